"""LLVM-dialect modules to objects."""

from __future__ import annotations

from math import prod
from typing import Any

from xcc._mlir import Module, Operation, ir
from xcc.options import CompileOptions
from xcc.passes.walk import ops_where
from xcc.targets.base import Chip, KernelBinary, KernelLaunch
from xcc.targets.llvm_text import linked, llvm_ir, nested_modules


def code_file(text: str, chip: Chip, kind: str) -> bytes:
    """All kernels of a module of the last stage as one file: assembly ("asm") or a relocatable object ("obj")."""
    from xcc.targets.cpu.codegen import optimized, target_machine

    def code(part: Any) -> Any:
        return optimized(llvm_ir(part), chip, vectorize=any("xcc.loops" in f.attributes for f in part.body.operations))

    whole = linked(map(code, nested_modules(text)))
    machine = target_machine(chip)
    if kind == "asm":
        listing: str = machine.emit_assembly(whole)
        return listing.encode()
    blob: bytes = machine.emit_object(whole)
    return blob


def emit_kernel(module: Module, chip: Chip, options: CompileOptions | None = None) -> KernelBinary:
    """The object of one kernel; its entry is the function marked ``xt.kernel``."""
    from xcc.targets.cpu.codegen import emit_object

    entry = next(f for f in module.body.operations if "xt.kernel" in f.attributes)
    name = ir.StringAttr(entry.attributes["sym_name"]).value
    loops = "xcc.loops" in entry.attributes
    blob = emit_object(llvm_ir(module), chip, vectorize=loops)
    return KernelBinary(name=name, format="obj", blob=blob, launches=(KernelLaunch(entry=name),),
                        report=(("stack", stack_bytes(module)),))


def stack_bytes(module: Module) -> int:
    """Bytes of the buffers that the functions of a module in the LLVM dialect have on the stack, together: a thread is
    in the kernel and in the body of its parallel loop at once."""
    return sum(_bytes(o) for o in ops_where(module, lambda o: o.name == "llvm.alloca"))


def _bytes(alloca: Operation) -> int:
    element, count = ir.TypeAttr(alloca.attributes["elem_type"]).value, alloca.operands[0].owner
    if isinstance(count, ir.Block) or count.name != "llvm.mlir.constant":
        return 0                # known in a run only
    lanes = prod(element.shape) if isinstance(element, ir.VectorType) else 1
    width = (element.element_type if isinstance(element, ir.VectorType) else element).width
    return int(ir.IntegerAttr(count.attributes["value"]).value) * lanes * int(width) // 8
