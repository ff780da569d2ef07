"""A compiled kernel, and how it is launched."""

from __future__ import annotations

from dataclasses import dataclass

from xcc.symbolic import Dim


@dataclass(frozen=True)
class KernelLaunch:
    """One device function of a compiled kernel. A kernel with several top-level ``scf.forall`` has several on a GPU.

    Attributes:
        entry: the symbol in the kernel's blob.
        grid: workgroups in x, y, z, as dims over the kernel's own symbols (d0, d1, ...); () on a CPU.
        block: threads of a workgroup in x, y, z; () on a CPU.
        shared_bytes: dynamic shared memory (LDS).
        early: it may be launched before the kernel ahead of it has ended: its code waits (passes/gpu/early_launch.py).
    """

    entry: str
    grid: tuple[Dim, ...] = ()
    block: tuple[int, ...] = ()
    shared_bytes: int = 0
    early: bool = False


@dataclass(frozen=True)
class KernelBinary:
    """A compiled kernel: what `emit_kernel` returns and the cache stores.

    Attributes:
        name: the kernel's name in the model.
        format: "obj" (relocatable object), "ptx", "cubin" or "hsaco" (linked code object).
        blob: the code.
        launches: in order; each gets the kernel's pointers (inputs, outputs, scratch), then its symbols as i64.
        scratch: sizes in bytes (dims over the kernel's symbols) of extra buffers passed after the outputs.
        report: numbers for the user, e.g. {"registers": 64, "spills": 0, "flops": "2*d0*768"}.
        ir: the kernel after the stage that the interpreter runs, when the options ask to keep it.
        portable: the kernel once more, in a form that GPUs run which came after the chip (PTX beside a cubin).
        shares: (input, output) pairs that may be the same memory, of those asked for (xcc.driver.shared_buffers).
    """

    name: str
    format: str
    blob: bytes
    launches: tuple[KernelLaunch, ...]
    scratch: tuple[Dim, ...] = ()
    report: tuple[tuple[str, int | float | str], ...] = ()
    ir: str = ""
    portable: bytes = b""
    shares: tuple[tuple[int, int], ...] = ()


def kernel_files(program: object, kernels: tuple[KernelBinary, ...], chip: object, options: object) -> dict[str, bytes]:
    """The artifact members of a GPU's model, path -> content: its kernels, which the executor loads as a module each,
    and what of them newer chips run."""
    return {f"kernels/{k.name}.{k.format}": k.blob for k in kernels} | {
        f"kernels/{k.name}.ptx": k.portable for k in kernels if k.portable}
