"""Kernel functions of NVVM modules carry ``nvvm.kernel`` alone, so that their text can be read back."""

from __future__ import annotations

from xcc._mlir import Module, Operation
from xcc.passes.base import Pass, PassContext, register_pass


def nvvm_kernels(module: Module) -> list[Operation]:
    """The functions of `module` that are kernels, as llvm.func."""
    outer = [op.operation for op in module.body]
    inner = [op.operation for m in outer if m.name == "gpu.module" for op in m.regions[0].blocks[0].operations]
    return [op for op in (*outer, *inner) if op.name == "llvm.func" and "nvvm.kernel" in op.attributes]


@register_pass
class NvvmKernelFunctions(Pass):
    """Drops ``gpu.kernel`` from functions with ``nvvm.kernel``: the conversion leaves it twice, which no parser takes.

    Before: ``llvm.func @k() attributes {gpu.kernel, gpu.kernel, nvvm.kernel}``; after: ``{nvvm.kernel}``.
    """

    def run(self, module: Module, ctx: PassContext) -> None:
        for op in nvvm_kernels(module):
            while "gpu.kernel" in op.attributes:
                del op.attributes["gpu.kernel"]
