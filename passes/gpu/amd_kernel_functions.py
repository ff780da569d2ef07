"""amd-kernel-functions: what the AMD code generator and loader need to know of a kernel, after the ROCDL conversion.

    llvm.func @k(%x: !llvm.ptr, %n: i64) attributes {rocdl.kernel, xcc.shared_bytes = 4096}
    ->
    llvm.func @k(%x: !llvm.ptr<1> {llvm.noalias, llvm.noundef}, %n: i64) { %p = llvm.addrspacecast %x ... }

Kernel arguments point into global memory, so that accesses are global_load and not flat_load; the LDS of the launch is
an array of its true size, so that the compiler knows how many workgroups share a compute unit.
"""

from __future__ import annotations

from xcc._mlir import Block, Module, Operation, ir
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.shared.attributes import MAY_ALIAS

CODE_OBJECT_VERSION = 500    # ROCm 5.6 and later load it
DYNAMIC_SHARED = "__dynamic_shmem__"


@register_pass
class AmdKernelFunctions(Pass):
    """Global address space for kernel pointers, LDS of its true size, code object version."""

    def run(self, module: Module, ctx: PassContext) -> None:
        for op in list(module.body.operations):
            if op.operation.name == "gpu.module":
                _rewrite_module(op.operation.regions[0].blocks[0])


def _rewrite_module(block: Block) -> None:
    operations = [op.operation for op in block.operations]
    kernels = [op for op in operations if op.name == "llvm.func" and "rocdl.kernel" in op.attributes]
    for kernel in kernels:
        while "gpu.kernel" in kernel.attributes:        # the conversion leaves it twice, which no parser takes
            del kernel.attributes["gpu.kernel"]
        _global_arguments(kernel)
        _loop_annotations(kernel)
    shared = max((_shared_bytes(k) for k in kernels), default=0)
    for op in operations:
        if op.name == "llvm.mlir.global" and ir.StringAttr(op.attributes["sym_name"]).value.startswith(DYNAMIC_SHARED):
            op.attributes["global_type"] = ir.TypeAttr.get(ir.Type.parse(f"!llvm.array<{shared} x i8>"))
            op.attributes["alignment"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 16)
    if kernels:
        flag = f'[#llvm.mlir.module_flag<error, "amdhsa_code_object_version", {CODE_OBJECT_VERSION} : i32>]'
        with ir.InsertionPoint.at_block_begin(block):
            ir.Operation.create("llvm.module_flags", attributes={"flags": ir.Attribute.parse(flag)})


def _loop_annotations(kernel: Operation) -> None:
    """What was said of a loop is said of the branch back to its start."""
    for block in kernel.regions[0].blocks:
        branch = list(block.operations)[-1].operation
        if "llvm.loop_annotation" in branch.attributes:
            branch.attributes["loop_annotation"] = branch.attributes["llvm.loop_annotation"]
            del branch.attributes["llvm.loop_annotation"]


def _shared_bytes(kernel: Operation) -> int:
    return int(ir.IntegerAttr(kernel.attributes["xcc.shared_bytes"]).value) \
        if "xcc.shared_bytes" in kernel.attributes else 0


def _global_arguments(kernel: Operation) -> None:
    """Generic pointer arguments become pointers to global memory, cast back at entry."""
    block = kernel.regions[0].blocks[0]
    generic, in_global = ir.Type.parse("!llvm.ptr"), ir.Type.parse("!llvm.ptr<1>")
    types, attributes = [], []
    for argument in list(block.arguments):
        if argument.type != generic:
            types.append(argument.type)
            attributes.append(ir.DictAttr.get({}))
            continue
        argument.set_type(in_global)
        with ir.InsertionPoint.at_block_begin(block):
            cast = ir.Operation.create("llvm.addrspacecast", results=[generic], operands=[argument])
        argument.replace_all_uses_except(cast.result, cast)
        types.append(in_global)
        alone = "" if MAY_ALIAS in kernel.attributes else "llvm.noalias, "
        attributes.append(ir.Attribute.parse(f"{{{alone}llvm.noundef}}"))
    inputs = ", ".join(str(t) for t in types)
    kernel.attributes["function_type"] = ir.TypeAttr.get(ir.Type.parse(f"!llvm.func<void ({inputs})>"))
    kernel.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes)
