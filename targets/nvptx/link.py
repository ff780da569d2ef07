"""The artifact members of an NVIDIA model: a cubin a kernel, and PTX, which newer GPUs run."""

from __future__ import annotations

from xcc.options import CompileOptions
from xcc.runtime.program import Program
from xcc.targets.base import Chip, KernelBinary


def link(program: Program, kernels: tuple[KernelBinary, ...], chip: Chip, options: CompileOptions) -> dict[str, bytes]:
    """Path -> content; xcc.runtime.cuda loads each as a module."""
    return {f"kernels/{k.name}.{k.format}": k.blob for k in kernels} | {
        f"kernels/{k.name}.ptx": k.portable for k in kernels if k.portable}
