"""Artifacts of several ranks, made by hand: programs of collectives and a kernel for this CPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cpu_kernels
import numpy as np

from xcc import symbolic
from xcc.options import CompileOptions
from xcc.runtime.artifact import FORMAT_VERSION, Artifact
from xcc.runtime.mesh import Mesh
from xcc.runtime.program import Buffer, Collective, Launch, Program, Statement, to_json
from xcc.targets.base import KernelBinary
from xcc.targets.cpu import chip as cpu_chip
from xcc.targets.cpu import codegen
from xcc.targets.cpu.target import TARGET
from xcc.targets.nvptx.target import TARGET as NVPTX

N = symbolic.sym("n")
KINDS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "permute", "broadcast")
ADD = """
func.func @add(%a: memref<?xf32>, %b: memref<?xf32>, %out: memref<?xf32>, %d0: index)
    attributes {xt.kernel, xt.symbols = ["d0"]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %d0 step %c1 {
    %x = memref.load %a[%i] : memref<?xf32>
    %y = memref.load %b[%i] : memref<?xf32>
    %z = arith.addf %x, %y : f32
    memref.store %z, %out[%i] : memref<?xf32>
  }
  return
}
"""


def reduced_sum(weight: str) -> Program:
    """y = all_reduce(x + w), where w is the rank's own; x has n elements, w as many of 1000 as x."""
    buffers = (Buffer("input", (N,), "f32", "x"), Buffer("weight", (1000,), "f32", weight), Buffer("temp", (N,), "f32"),
               Buffer("output", (N,), "f32", "y"))
    body = (Launch("add", (0, 1, 2), (N,)), Collective("all_reduce", 2, 3, ("tp",), "add"))
    return Program(buffers, body, (0,), (3,), ("n",))


def each_kind(dtype: str, ranks: int) -> Program:
    """An output a kind of collective, of 4 elements a rank."""
    size = 4 * ranks
    buffers, body = [Buffer("input", (size,), dtype, "x")], list[Statement]()
    for kind in KINDS:
        shape = {"all_gather": size * ranks, "reduce_scatter": 4}.get(kind, size)
        buffers.append(Buffer("output", (shape,), dtype, kind))
        body.append(Collective(kind, 0, len(buffers) - 1, ("tp",), "add" if "reduce" in kind else "",
                               ((ranks - 1, 0),) if kind == "permute" else (), ranks - 1 if kind == "broadcast" else 0))
    return Program(tuple(buffers), tuple(body), (0,), tuple(range(1, len(buffers))))


def artifact(programs: list[Program], mesh: Mesh, weights: dict[str, Any] | None = None) -> Artifact:
    """One for this CPU, a program a rank; programs that are alike in all but their weights' names share their code."""
    kernel = KernelBinary("k", "obj", codegen.emit_object(cpu_kernels.llvm_text(ADD), cpu_chip.host()), ())
    members = dict(TARGET.link(programs[0], (kernel,), cpu_chip.host(), None))
    for rank, program in enumerate(programs[1:], 1):
        members[f"ranks/{rank}/program.json"] = json.dumps(to_json(program)).encode()
    manifest = {"format": FORMAT_VERSION, "target": "cpu", "chip": "native", "name": "m",
                "mesh": [list(axis) for axis in mesh.axes], "ranks": [{} for _ in programs]}
    return Artifact(manifest, programs[0], members, weights or {})


def summing(folder: Path, ranks: int = 2, first: float = 0) -> Path:
    """reduced_sum on a mesh of `ranks`, written; a rank's weight is `first`, 10 more for each rank."""
    weights = {name_of(r): np.full(1000, first + 10 * r, np.float32) for r in range(ranks)}
    path = folder / f"sum-{ranks}-{first}.xcm"
    artifact([reduced_sum(name_of(r)) for r in range(ranks)], Mesh((("tp", ranks),)), weights).save(path)
    return path


def name_of(rank: int) -> str:
    """Of the weight."""
    return f"w@rank{rank}" if rank else "w"




def plain_sum(dtype: str = "f32") -> Program:
    """y = all_reduce(x), without a kernel."""
    buffers = (Buffer("input", (N,), dtype, "x"), Buffer("output", (N,), dtype, "y"))
    return Program(buffers, (Collective("all_reduce", 0, 1, ("tp",), "add"),), (0,), (1,), ("n",))


def on_gpus(program: Program, ranks: int = 2, chip: str = "sm_80") -> Artifact:
    """The same program, which has no kernels but those of collectives, for each rank on an NVIDIA GPU."""
    options = CompileOptions.make("nvptx,code=ptx")
    kernels = NVPTX.collective_kernels(program, NVPTX.chips()[chip], options)
    members = dict(NVPTX.link(program, kernels, NVPTX.chips()[chip], options))
    members |= {f"ranks/{rank}/program.json": json.dumps(to_json(program)).encode() for rank in range(1, ranks)}
    manifest = {"format": FORMAT_VERSION, "target": "nvptx", "chip": chip, "name": "m", "mesh": [["tp", ranks]],
                "ranks": [{} for _ in range(ranks)],
                "kernels": [{"name": k.name, "entries": [e.entry for e in k.launches]} for k in kernels]}
    return Artifact(manifest, program, members, {})
