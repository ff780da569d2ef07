"""The CPU target."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from xcc.diagnostics import UserError
from xcc.passes.legal_ops import TILES
from xcc.targets.base import Chip, KernelBinary, Target
from xcc.targets.cpu import chip as cpu_chip
from xcc.targets.folders import deferred

if TYPE_CHECKING:
    from xcc.options import CompileOptions
    from xcc.runtime.program import Program


def _link(program: Program, kernels: tuple[KernelBinary, ...], chip: Chip, options: CompileOptions) -> dict[str, bytes]:
    """``kernels/model.so``: every kernel, the host program, the thread pool; ``kernels/cpu.json``: what it needs, how
    many bytes of stack, and whether a kernel has work for several threads."""
    if "apple" in chip.triple:
        raise UserError(f"code for {chip.name} is compiled (--emit=code, --emit=asm) but cannot be linked yet")
    from xcc.targets.cpu.codegen import emit_object, thread_pool
    from xcc.targets.cpu.host import host_program
    from xcc.targets.cpu.link import link_shared

    host = emit_object(host_program(program), chip)
    shared = link_shared([*(k.blob for k in kernels), host, thread_pool(chip)])
    facts = {"triple": chip.triple, "cpu": chip.cpu, "features": chip.features,
             "threads": getattr(options, "threads", 0), "requires": required_flags(chip),
             "parallel": any(b"xcc_parallel" in k.blob for k in kernels),
             "stack": max((int(dict(k.report).get("stack", 0)) for k in kernels), default=0)}
    return {"kernels/model.so": shared, "kernels/cpu.json": json.dumps(facts).encode()}


FLAGS = {name: name.replace("avx512", "avx512_").replace("avxv", "avx_v").replace("amx-", "amx_") for name in (
    "avx512vnni", "avx512bf16", "avx512vbmi2", "avx512bitalg", "avx512vpopcntdq", "avx512fp16", "avxvnni", "amx-tile",
    "amx-int8", "amx-bf16", "gfni", "vaes", "vpclmulqdq", "xsavec")} | {"avx512vbmi": "avx512vbmi",
                                                                       "avx512ifma": "avx512ifma"}
"""LLVM's names of features that code may use, and those of /proc/cpuinfo."""

FLAGS_OF = {"znver4": ("avx512_vnni", "avx512_bf16", "avx512vbmi", "avx512_vbmi2", "avx512ifma", "gfni"),
            "znver5": ("avx512_vnni", "avx512_bf16", "avx512vbmi", "avx512_vbmi2", "avx512ifma", "avx_vnni", "gfni"),
            "sapphirerapids": ("avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_int8", "amx_bf16")}


def required_flags(chip: Chip) -> list[str]:
    """CPU flags, as /proc/cpuinfo names them, without which the code cannot run."""
    if not chip.triple.startswith("x86_64"):
        return []
    wide = ["avx512f", "avx512bw", "avx512dq", "avx512vl"] if chip.vector_bytes == 64 else []
    said = {FLAGS[f[1:]]: f[:1] for f in chip.features.split(",") if f[1:] in FLAGS}    # LLVM may use all that there is
    more = [*(f for f in FLAGS_OF.get(chip.cpu, ()) if said.get(f) != "-"), *(f for f in said if said[f] == "+")]
    return list(dict.fromkeys(["avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", *wide, *more]))


TARGET = Target(
    name="cpu", chips=cpu_chip.chips, default_chip=cpu_chip.host, link=_link,
    pipeline=deferred("cpu", "pipeline", "pipeline"), tile_stages=deferred("cpu", "pipeline", "tile_stages"),
    emit_kernel=deferred("cpu", "emit", "emit_kernel"),
    formats=("asm", "obj"), code_file=deferred("cpu", "emit", "code_file"), kept_stage="cpu", shares_after="vector",
    legal={"cpu": (*TILES, "func.call", "builtin.unrealized_conversion_cast", "llvm.*"),
           "llvm": ("builtin.module", "llvm.*")},
    title="CPUs", other_names="arm aarch64 host llvm native x86 x86-64 x86_64", native_key=cpu_chip.native_key,
    other_chips={"znver4": "zen4 genoa", "znver5": "zen5 turin", "sapphirerapids": "spr xeon",
                 "x86-64-v3": "avx2 haswell x86-64", "x86-64-v4": "avx512 skylake-avx512",
                 "neoverse-v1": "graviton graviton3", "apple-m1": "m1"})
