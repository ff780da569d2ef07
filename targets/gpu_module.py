"""The last step before a GPU's code generator, common to both vendors: kernels out of their gpu.modules, as LLVM IR."""

from __future__ import annotations

from xcc import symbolic
from xcc._mlir import Module, Operation, ir
from xcc.passes.gpu.early_launch import EARLY
from xcc.symbolic import Dim
from xcc.targets.base import KernelLaunch
from xcc.targets.llvm_text import llvm_ir

BLOCK = ("known_block_size", "gpu.known_block_size", "nvvm.maxntid")     # attributes with the threads of a workgroup


def kernel_functions(module: Module) -> list[Operation]:
    """The functions that are kernels (gpu.func or llvm.func), in order, inside gpu.modules or outside."""
    found = []
    for op in module.body.operations:
        inner = op.operation.regions[0].blocks[0].operations if op.operation.name == "gpu.module" else [op]
        found += [f.operation for f in inner if _is_kernel(f.operation)]
    return found


def _is_kernel(op: Operation) -> bool:
    if op.name not in ("gpu.func", "llvm.func"):
        return False
    return any(name in op.attributes for name in ("kernel", "gpu.kernel", "nvvm.kernel", "rocdl.kernel"))


def kernel_launches(module: Module, dynamic_shared: bool = True) -> tuple[KernelLaunch, ...]:
    """How the kernels are launched, from the attributes that ``distribute`` left.

    dynamic_shared: shared memory is given at launch; False when it is in the code.
    """
    return tuple(_launch(f, dynamic_shared) for f in kernel_functions(module))


def _launch(function: Operation, dynamic_shared: bool) -> KernelLaunch:
    attributes = function.attributes
    block = next(attributes[key] for key in BLOCK if key in attributes)
    grid = symbolic.parse(ir.StringAttr(attributes["xcc.grid"]).value)
    return KernelLaunch(entry=ir.StringAttr(attributes["sym_name"]).value, grid=(grid, 1, 1),
                        block=tuple(int(n) for n in block), early=EARLY in attributes,
                        shared_bytes=shared_bytes_of(function) if dynamic_shared else 0)


def scratch_bytes(function: Operation) -> tuple[Dim, ...]:
    """The sizes of the buffers that the launches of the kernel hand to each other."""
    if "xcc.scratch" not in function.attributes:
        return ()
    return tuple(symbolic.parse(a.value) for a in ir.ArrayAttr(function.attributes["xcc.scratch"]))


def shared_bytes_of(function: Operation) -> int:
    """Shared memory of one workgroup."""
    if "xcc.shared_bytes" not in function.attributes:
        return 0
    return int(ir.IntegerAttr(function.attributes["xcc.shared_bytes"]).value)


def flat_module(module: Module) -> Module:
    """A new module that holds what the gpu.modules of `module` hold, and what lies beside them."""
    with module.context, ir.Location.unknown():
        out = ir.Module.create()
        with ir.InsertionPoint(out.body):
            for op in module.body.operations:
                parts = op.operation.regions[0].blocks[0].operations if op.operation.name == "gpu.module" else [op]
                for part in parts:
                    part.operation.clone()
    return out


def kernel_llvm_ir(module: Module) -> str:
    """LLVM IR of all kernels of a module at stage ``nvvm`` or ``rocdl``."""
    return llvm_ir(flat_module(module))
