"""NVIDIA GPUs that xcc knows: one row a chip (CUDA programming guide, "Compute Capabilities"; vendor data sheets)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from xcc.targets.base import Chip

KIB, MIB = 1024, 1 << 20
TRIPLE = "nvptx64-nvidia-cuda"
FALLBACK = "sm_90a"
PCIE = 20e9         # bytes/s of a collective where there is no NVLink
NETWORK = 40e9      # a GPU's share of its machine's network: 400 Gbit/s in large clusters; not measured
# Nanoseconds of a small collective, measured on two H100s (benchmarks/results/parallel-h100.txt) and taken to be those
# of the other chips: by NCCL in a captured graph, and as an exchange. Over a network, which is not measured.
COLLECTIVE, EXCHANGE, AFAR = 7_000, 2_500, 40_000


class NvidiaChip(Chip):
    """What NVIDIA's chips are like: ptxas orders the instructions (of sm_80 and newer, in xcc's table)."""

    instruction_tables = ("xcc.passes.gpu.vendor.fragments_nvidia",)
    primitives = "xcc.targets.nvptx.primitives"
    tiles = "xcc.targets.nvptx.tiles"
    streamed_rows = (16, 32)
    maps_peers: ClassVar[bool] = True
    intrinsics: ClassVar[Mapping[str, str]] = {
        "exp2": "nvvm.ex2.approx.ftz.*", "reciprocal": "nvvm.rcp.approx.ftz.f", "rsqrt": "nvvm.rsqrt.approx.f"}
    llvm_schedules = False
    loads_wait_at_barriers = True
    core_registers = 1 << 16
    chained_families = ("mma",)

    @property
    def has_async_copies(self) -> bool:
        return "mma" in self.matrix

    @property
    def has_matrix_loads(self) -> bool:
        return "mma" in self.matrix

    @property
    def warpgroup_products(self) -> bool:
        return "wgmma" in self.matrix


def _chip(name: str, ptx: str, sms: int, shared: int, l2: int, bandwidth: float, f32: float, f16: float,
          int8: float, matrix: tuple[str, ...], link: float, memory: int, early: bool = False, lines: bool = False,
          ) -> Chip:
    return NvidiaChip(name=name, triple=TRIPLE, cpu=name, features=f"+ptx{ptx}", cores=sms, vector_bytes=16,
                      vector_registers=255, warp=32, max_threads=1024, shared_bytes=shared, l2_bytes=l2,
                      bandwidth=bandwidth,
                      flops=(("f32", f32), ("f16", f16), ("bf16", f16), ("tf32", f16 / 2), ("i8", int8)),
                      matrix=matrix, early_launch=early, line_priority=lines, link_bandwidth=link,
                      link_latency=COLLECTIVE, exchange_latency=EXCHANGE, memory_bytes=memory * 10**9,
                      network_bandwidth=NETWORK, network_latency=AFAR)


_CHIPS = {c.name: c for c in (
    # A100 SXM 80 GB, A10 (GA102), L40S (AD102), H100 SXM, B200
    _chip("sm_80", "70", 108, 163 * KIB, 40 * MIB, 2039e9, 19.5e12, 312e12, 624e12, ("mma",), 230e9, 80),
    _chip("sm_86", "71", 72, 99 * KIB, 6 * MIB, 600e9, 31.2e12, 125e12, 250e12, ("mma",), PCIE, 24),
    _chip("sm_89", "84", 142, 99 * KIB, 96 * MIB, 864e9, 91.6e12, 362e12, 733e12, ("mma", "mma-f8"),
          PCIE, 48),
    _chip("sm_90a", "84", 132, 227 * KIB, 50 * MIB, 3350e9, 67e12, 989e12, 1979e12, ("mma", "mma-f8", "wgmma"),
          287e9, 80, True, True),
    _chip("sm_100a", "86", 148, 227 * KIB, 126 * MIB, 8000e9, 80e12, 2250e12, 4500e12, ("mma", "mma-f8", "tcgen05"),
          600e9, 192, True),
)}


def chips() -> dict[str, Chip]:
    """The table by name."""
    return dict(_CHIPS)


def chip_for_capability(major: int, minor: int, sms: int = 0) -> Chip:
    """The chip of a GPU that the driver reports: the newest row that its code runs on, with the true SM count."""
    from dataclasses import replace

    exact = {divmod(int(name.removeprefix("sm_").rstrip("a")), 10): name for name in _CHIPS}
    older = [key for key in exact if key <= (major, minor) and not exact[key].endswith("a")]
    name = exact.get((major, minor)) or exact[max(older, default=(8, 0))]
    chip = _CHIPS[name]
    return replace(chip, cores=sms) if sms else chip
