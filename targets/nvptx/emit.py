"""NVVM-dialect kernels to PTX through llvmlite, and to a cubin where ptxas is installed."""

from __future__ import annotations

import re
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

from xcc._mlir import Module, Operation, ir
from xcc.diagnostics import CompilerBug, UserError
from xcc.options import CompileOptions
from xcc.targets.base import Chip, KernelBinary
from xcc.targets.gpu_module import flat_module, kernel_functions, kernel_launches, scratch_bytes
from xcc.targets.llvm_text import linked, llvm_ir, nested_modules, optimized
from xcc.targets.nvptx.packed_adds import without_packed_adds
from xcc.targets.nvptx.ptxas import find_ptxas

SHARED_ALIGNMENT = 1024     # bytes: the period of the swizzles that wgmma reads
DEVICE_ATTRIBUTES = ("gpu.", "xcc.", "xt.")


def emit_kernel(module: Module, chip: Chip, options: CompileOptions | None = None) -> KernelBinary:
    """PTX, or a cubin with its report of registers and spills where ptxas is found, of one kernel's functions."""
    launches = kernel_launches(module)
    if not launches:
        raise CompilerBug("the module has no kernel to emit")
    name, scratch = launches[0].entry, scratch_bytes(kernel_functions(module)[0])
    ptx = ptx_of(module, chip)
    code = options.option("code") if options is not None else ""
    if code == "cubin" and find_ptxas() is None:
        raise UserError("--target=nvptx,code=cubin needs ptxas, on PATH or of the wheel nvidia-cuda-nvcc")
    if code == "ptx" or find_ptxas() is None:
        return KernelBinary(name=name, format="ptx", blob=ptx.encode(), launches=launches, scratch=scratch)
    cubin, report = assemble(ptx, chip.name)
    return KernelBinary(name=name, format="cubin", blob=cubin, launches=launches, scratch=scratch,
                        report=tuple(report.items()), portable=b"" if code == "cubin" else ptx.encode())


def code_file(text: str, chip: Chip, kind: str) -> bytes:
    """All kernels of a module of stage nvvm as one file: PTX ("ptx", "asm") or a "cubin"."""
    ptx = _assembly(linked(_parsed(llvm_ir(device_module(part)), chip) for part in nested_modules(text)), chip)
    if kind != "cubin":
        return ptx.encode()
    if find_ptxas() is None:
        raise UserError("--emit=cubin needs ptxas, on PATH or of the wheel nvidia-cuda-nvcc; --emit=ptx does not")
    return assemble(ptx, chip.name)[0]


def device_module(module: Module) -> Module:
    """A plain module of the gpu.modules' content, as LLVM translation wants it."""
    flat = flat_module(module)
    with flat.context:
        for op in (o.operation for o in flat.body.operations):
            if op.name == "llvm.func":
                _check_device_function(op)
            for name in list(op.attributes):
                if name.startswith(DEVICE_ATTRIBUTES):
                    del op.attributes[name]
            if op.name == "llvm.mlir.global" and "dynamic_shmem" in str(op.attributes["sym_name"]):
                op.attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<external>")
                op.attributes["alignment"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), SHARED_ALIGNMENT)
    return flat


def _check_device_function(op: Operation) -> None:
    """UserError for a function of NVIDIA's math library, which upstream calls for math that has no expansion."""
    name = ir.StringAttr(op.attributes["sym_name"]).value
    if name.startswith("__nv_"):
        raise UserError(f"the model needs '{name.removeprefix('__nv_')}' in a type for which a GPU has no such "
                        "function here (f64?); convert it to f32")


@lru_cache(maxsize=8)
def target_machine(chip: Chip) -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(chip.triple).create_target_machine(cpu=chip.cpu, features=chip.features, opt=3)


def ptx_of(module: Module, chip: Chip) -> str:
    """The PTX text of a module at stage nvvm."""
    return _assembly(_parsed(llvm_ir(device_module(module)), chip), chip)


def _parsed(text: str, chip: Chip) -> Any:
    """The llvmlite module of LLVM IR, optimized for `chip`."""
    import llvmlite.binding as llvm

    # threads' vectors are there, and LLVM's would make pairs of indices
    parsed = optimized(text, chip, target_machine(chip), slp_vectorization=False)
    whole = str(parsed)
    safe = without_packed_adds(whole)
    return parsed if safe is whole else llvm.parse_assembly(safe)


def _assembly(parsed: Any, chip: Chip) -> str:
    text: str = target_machine(chip).emit_assembly(parsed)
    return text


def assemble(ptx: str, chip: str) -> tuple[bytes, dict[str, int | float | str]]:
    """The cubin of PTX text and ptxas's report: registers (the most of any entry), spilled bytes, stack bytes."""
    tool = find_ptxas()
    if tool is None:
        raise CompilerBug("assemble: there is no ptxas")
    with tempfile.TemporaryDirectory(prefix="xcc-ptxas-") as folder:
        source, out = Path(folder, "k.ptx"), Path(folder, "k.cubin")
        source.write_text(ptx)
        done = subprocess.run([tool, "-v", "-O3", f"-arch={chip}", str(source), "-o", str(out)],
                              capture_output=True, text=True)
        if done.returncode:
            raise CompilerBug(f"ptxas refused a kernel for {chip}", details=done.stderr + "\n" + ptx)
        return out.read_bytes(), _report(done.stderr)


def _report(text: str) -> dict[str, int | float | str]:
    def most(pattern: str) -> int:
        return max((int(n) for n in re.findall(pattern, text)), default=0)

    return {"registers": most(r"Used (\d+) registers"), "spills": most(r"(\d+) bytes spill stores"),
            "stack": most(r"(\d+) bytes stack frame")}
