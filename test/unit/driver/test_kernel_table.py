"""The table of kernels that ``xcc -v`` prints."""

from __future__ import annotations

from xcc.driver.kernel_table import kernel_table
from xcc.targets.base import KernelBinary, KernelLaunch


def test_columns_are_those_that_the_reports_have():
    first = KernelBinary("softmax_0", "cubin", b"12345", (KernelLaunch("a", (1,), (32, 4, 1), 512),
                                                         KernelLaunch("b", (1,), (64, 1, 1), 1024)),
                         report=(("registers", 40), ("spills", 0)))
    second = KernelBinary("x", "ptx", b"1", (KernelLaunch("x", (1,), (32, 1, 1)),))
    head, *rows = kernel_table((first, second))
    assert head.split() == ["kernel", "code", "launches", "threads", "shared", "registers", "spills"]
    assert rows[0].split() == ["softmax_0", "5", "2", "128", "1024", "40", "0"]
    assert rows[1].split() == ["x", "1", "1", "32", "0", "-", "-"]
    assert len({len(line) for line in (head, *rows)}) == 1


def test_amd_numbers():
    report = (("vgprs", 128), ("shared_bytes", 4096), ("occupancy", 4), ("matrix_share", 0.25))
    head, row = kernel_table((KernelBinary("k", "hsaco", b"", (KernelLaunch("k", (1,), (64, 1, 1)),), report=report),))
    assert head.split() == ["kernel", "code", "launches", "threads", "shared", "VGPRs", "waves/SIMD", "share"]
    assert row.split()[4:] == ["4096", "128", "4", "25%"]


def test_no_kernels_no_table():
    assert kernel_table(()) == []
