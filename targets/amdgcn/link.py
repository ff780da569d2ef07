"""The artifact members of an AMD model: one code object a kernel."""

from __future__ import annotations

from xcc.options import CompileOptions
from xcc.runtime.program import Program
from xcc.targets.base import Chip, KernelBinary


def link(program: Program, kernels: tuple[KernelBinary, ...], chip: Chip, options: CompileOptions) -> dict[str, bytes]:
    """Path -> content; xcc.runtime.hip loads each as a module."""
    return {f"kernels/{k.name}.{k.format}": k.blob for k in kernels}
