"""ROCDL modules to linked code objects: LLVM IR, LLVM's AMDGPU back end, LLD, and a check of what came out."""

from __future__ import annotations

import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

from xcc._mlir import Module, Operation, Type, ir
from xcc.diagnostics import CompilerBug, UserError
from xcc.options import CompileOptions
from xcc.targets.amdgcn.assembly import inner_loop, occupancy
from xcc.targets.amdgcn.code_object import KernelInfo, code_object_chip, read_code_object
from xcc.targets.base import Chip, KernelBinary, KernelLaunch
from xcc.targets.gpu_module import kernel_functions, kernel_launches, kernel_llvm_ir, scratch_bytes
from xcc.targets.lld import lld
from xcc.targets.llvm_text import linked, nested_modules, optimized


@cache
def _target_machine(chip: Chip) -> Any:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(chip.triple)
    return target.create_target_machine(cpu=chip.cpu, features=chip.features, opt=3, reloc="pic", codemodel="small")


def _optimized(ir_text: str, chip: Chip) -> llvm.ModuleRef:
    return optimized(ir_text, chip, _target_machine(chip), loop_vectorization=False, slp_vectorization=False)


def assembly(ir_text: str, chip: Chip) -> str:
    """The chip's assembly of an LLVM IR module."""
    text: str = _target_machine(chip).emit_assembly(_optimized(ir_text, chip))
    return text


def code_file(text: str, chip: Chip, kind: str) -> bytes:
    """All kernels of a module of stage rocdl as one file: assembly ("asm") or a code object ("hsaco")."""
    whole = linked(_optimized(kernel_llvm_ir(part), chip) for part in nested_modules(text))
    if kind == "asm":
        listing: str = _target_machine(chip).emit_assembly(whole)
        return listing.encode()
    return link_code_object(_target_machine(chip).emit_object(whole))


def link_code_object(relocatable: bytes) -> bytes:
    """A loadable code object of one relocatable object, by LLD."""
    linker = lld()
    if not linker:
        raise UserError("no linker for AMD code found: pip install ziglang, or install ld.lld")
    with tempfile.TemporaryDirectory(prefix="xcc-link-") as folder:
        source, out = Path(folder, "kernel.o"), Path(folder, "kernel.hsaco")
        source.write_bytes(relocatable)
        done = subprocess.run([*linker, "-shared", "--no-undefined", "-o", str(out), str(source)],
                              capture_output=True, text=True)
        if done.returncode:
            raise CompilerBug(f"linking AMD code failed with status {done.returncode}", details=done.stderr)
        return out.read_bytes()


def emit_kernel(module: Module, chip: Chip, options: CompileOptions | None = None) -> KernelBinary:
    """The code object of one kernel at stage ``rocdl``, checked against what the launches assume."""
    made, machine = _optimized(kernel_llvm_ir(module), chip), _target_machine(chip)
    blob = link_code_object(machine.emit_object(made.clone()))      # to emit a module changes it
    launches = kernel_launches(module, dynamic_shared=False)
    listing = machine.emit_assembly(made)
    infos = read_code_object(blob)
    for function, launch in zip(kernel_functions(module), launches, strict=True):
        check_kernel(function, launch, infos, blob, chip)
    return KernelBinary(name=launches[0].entry, format="hsaco", blob=blob, launches=launches,
                        scratch=scratch_bytes(kernel_functions(module)[0]),
                        report=_report(launches, infos, listing, chip))


def check_kernel(function: Operation, launch: KernelLaunch, infos: dict[str, KernelInfo], blob: bytes,
                 chip: Chip) -> None:
    """Raises CompilerBug where the code object does not fit the chip, the kernel's arguments or its launch."""
    def wrong(what: str) -> CompilerBug:
        return CompilerBug(f"kernel {launch.entry} for {chip.name}: {what}")

    if code_object_chip(blob) != chip.name:
        raise wrong(f"the code object is for {code_object_chip(blob)}")
    if launch.entry not in infos:
        raise wrong(f"the code object has only {', '.join(infos)}")
    info = infos[launch.entry]
    function_type = ir.TypeAttr(function.attributes["function_type"]).value
    wanted = ["global_buffer" if "ptr" in str(t) else "by_value" for t in llvm_inputs(function_type)]
    got = [a.kind for a in info.arguments]
    if got != wanted or [a.offset for a in info.arguments] != [8 * i for i in range(len(wanted))]:
        raise wrong(f"arguments are {info.arguments}, {wanted} of 8 bytes each are needed")
    threads = launch.block[0] * launch.block[1] * launch.block[2]
    if info.max_threads < threads:
        raise wrong(f"compiled for {info.max_threads} threads, launched with {threads}")
    if info.wave != chip.warp:
        raise wrong(f"compiled for waves of {info.wave}, the chip table says {chip.warp}")
    if info.shared_bytes + launch.shared_bytes > chip.shared_bytes:
        raise wrong(f"needs {info.shared_bytes + launch.shared_bytes} bytes of LDS, the chip has {chip.shared_bytes}")


def llvm_inputs(function_type: Type) -> list[str]:
    """The parameter types of an LLVM function type, as text; kernels have plain scalars and pointers only."""
    inside = str(function_type).split("(", 1)[1].rsplit(")", 1)[0]
    return [t.strip() for t in inside.split(",") if t.strip()]


def _report(launches: tuple[KernelLaunch, ...], infos: dict[str, KernelInfo], listing: str, chip: Chip
            ) -> tuple[tuple[str, int | float | str], ...]:
    """Numbers for the user; of several launches the largest need and the busiest loop."""
    used = [infos[launch.entry] for launch in launches]
    loops = [inner_loop(listing, launch.entry) for launch in launches]
    best = max(loops, key=lambda loop: (loop.matrix, loop.instructions))
    return (("vgprs", max(i.vgprs for i in used)), ("agprs", max(i.agprs for i in used)),
            ("sgprs", max(i.sgprs for i in used)), ("shared_bytes", max(i.shared_bytes for i in used)),
            ("scratch_bytes", max(i.scratch_bytes for i in used)),
            ("spills", max(i.vgpr_spills for i in used)), ("sgpr_spills", max(i.sgpr_spills for i in used)),
            ("occupancy", min(occupancy(chip, i.vgprs, i.shared_bytes, i.max_threads) for i in used)),
            ("loop_instructions", best.instructions), ("loop_matrix", best.matrix),
            ("matrix_share", round(best.share, 3)))
