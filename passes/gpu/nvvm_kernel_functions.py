"""What the NVVM dialect wants of kernel functions: that they carry ``nvvm.kernel`` alone, so that their text can be
read back, and their bounds by its names."""

from __future__ import annotations

import math

from xcc._mlir import Module, Operation, ir
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.gpu.layout.tile_ops import int_attribute
from xcc.passes.shared.attributes import RESIDENT

THREADS, WORKGROUPS = "nvvm.maxntid", "nvvm.minctasm"


def nvvm_kernels(module: Module) -> list[Operation]:
    """The functions of `module` that are kernels, as llvm.func."""
    outer = [op.operation for op in module.body]
    inner = [op.operation for m in outer if m.name == "gpu.module" for op in m.regions[0].blocks[0].operations]
    return [op for op in (*outer, *inner) if op.name == "llvm.func" and "nvvm.kernel" in op.attributes]


@register_pass
class NvvmKernelFunctions(Pass):
    """Drops ``gpu.kernel`` from functions with ``nvvm.kernel``: the conversion leaves it twice, which no parser takes.
    Warps that a core is to have room for become workgroups.

    Before: ``llvm.func @k() attributes {gpu.kernel, gpu.kernel, nvvm.kernel, nvvm.maxntid = [128, 1, 1], xcc.resident =
    32}``; after: ``{nvvm.kernel, nvvm.maxntid = [128, 1, 1], nvvm.minctasm = 8}``.
    """

    def run(self, module: Module, ctx: PassContext) -> None:
        for op in nvvm_kernels(module):
            while "gpu.kernel" in op.attributes:
                del op.attributes["gpu.kernel"]
            resident = int_attribute(op, RESIDENT)
            if resident and THREADS in op.attributes and ctx.chip is not None:
                threads = math.prod(ir.DenseI32ArrayAttr(op.attributes[THREADS]))
                op.attributes[WORKGROUPS] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), max(
                    1, resident * ctx.chip.warp // threads))
