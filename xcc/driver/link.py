"""From compiled kernels to an artifact: the host program, its launches, the target's files, the weights."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from xcc import symbolic
from xcc.driver.sources import Source
from xcc.passes.base import PassContext
from xcc.runtime.arena import touched, walk
from xcc.runtime.artifact import FORMAT_VERSION, Artifact
from xcc.runtime.program import Buffer, BufferKind, Launch, Program, expanded, to_json
from xcc.symbolic import Dim
from xcc.targets.base import KernelBinary, Target
from xcc.targets.chip_spec import chip_facts
from xcc.weights import WeightStore

__all__ = ["MEANING", "bind_launches", "link_model", "link_program"]

MEANING = "ir/kernels.mlir"
"""The member that holds the module at stage ``kernels``, with the names of nodes: what the kernels mean."""


def link_model(source: Source, kernels: tuple[KernelBinary, ...], target: Target, ctx: PassContext,
               work: Mapping[str, Mapping[str, str]], meaning: str = "") -> Artifact:
    """The artifact of `source`, whose module is now the host program; `work` is what is known of each kernel's cost,
    `meaning` the module before."""
    from xcc.passes.host.lowering.program_ops import read_program

    program = read_program(source.module)
    return link_program(source.name, program, source.weights, kernels, target, ctx, work, meaning)


def link_program(name: str, program: Program, values: WeightStore, kernels: tuple[KernelBinary, ...],
                 target: Target, ctx: PassContext, work: Mapping[str, Mapping[str, str]], meaning: str = "",
                 ) -> Artifact:
    """The artifact of a host program, whose launches name the kernels; `values` are its weights."""
    program = bind_launches(program, {k.name: k for k in kernels})
    kernels = (*kernels, *target.collective_kernels(program, ctx.chip, ctx.options))
    used = set(program.weight_names())
    each_run = {program.buffers[b].name for s in walk(program.body) for b in map(program.root, touched(s))}
    # what only the setup reads lies together behind the others: its memory is given back in whole large pages
    names = sorted((weight for weight in values if weight in used), key=lambda weight: weight not in each_run)
    with ThreadPoolExecutor(1) as pool:         # weights that are packed at first use are packed while others link
        arrays = pool.submit(lambda: {weight: values[weight] for weight in names})
        members = dict(target.link(program, kernels, ctx.chip, ctx.options))
        weights = arrays.result()
    if ctx.options.keep_ir:
        members |= {f"ir/{k.name}.mlir": k.ir.encode() for k in kernels if k.ir}
        members |= {MEANING: meaning.encode()} if meaning else {}
    return Artifact(_manifest(name, program, kernels, ctx, work), program, members, weights)


def bind_launches(program: Program, kernels: dict[str, KernelBinary]) -> Program:
    """`program` with each launch of a kernel replaced by its device launches, scratch buffers added."""
    buffers = list(program.buffers)

    body = expanded(program.body, lambda s: _launches(s, kernels[s.kernel], buffers) if isinstance(s, Launch) else (s,))
    setup = [launch for s in program.setup for launch in _launches(s, kernels[s.kernel], buffers, "kept")]
    return replace(program, buffers=tuple(buffers), body=body, setup=tuple(setup))


def _launches(launch: Launch, kernel: KernelBinary, buffers: list[Buffer], scratch_kind: BufferKind = "temp",
              ) -> list[Launch]:
    env = {f"d{i}": value for i, value in enumerate(launch.symbols)}

    def bound(dims: Sequence[Dim]) -> tuple[Dim, ...]:
        return tuple(symbolic.substitute(d, env) for d in dims)

    scratch = []
    for size in bound(kernel.scratch):
        scratch.append(len(buffers))
        buffers.append(Buffer(scratch_kind, (size,), "i8"))
    return [Launch(k.entry, (*launch.buffers, *scratch), launch.symbols, bound(k.grid), k.block, k.shared_bytes,
                   k.early) for k in kernel.launches]


def _manifest(name: str, program: Program, kernels: tuple[KernelBinary, ...], ctx: PassContext,
              work: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    from xcc.cache.cache import compiler_version

    def signature(indices: tuple[int, ...]) -> list[dict[str, Any]]:
        return [{"name": b.name, "dtype": b.dtype, "shape": to_json(b.shape)}
                for b in (program.buffers[i] for i in indices)]

    options = ctx.options
    return {
        "format": FORMAT_VERSION, "name": name, "target": options.target, "chip": ctx.chip.name,
        "chip_attributes": chip_facts(ctx.chip),
        "compiler": {"version": _version(), "hash": compiler_version()},
        "options": {"precision": options.precision, "threads": options.threads,
                    "dims": [list(d) for d in options.dims], "fix": [list(f) for f in options.fix],
                    "updates": [list(u) for u in options.updates],
                    "target": [list(t) for t in options.target_options]},
        "inputs": signature(program.inputs), "outputs": signature(program.outputs),
        "state": signature(tuple(s.buffer for s in program.states)),
        "kernels": [{"name": k.name, "format": k.format, "bytes": len(k.blob), "entries": [e.entry for e in k.launches],
                     **work.get(k.name, {}), **dict(k.report)} for k in kernels],
    }


@functools.cache
def _version() -> str:
    """The release that is installed."""
    from importlib import metadata

    try:
        return metadata.version("xcc")
    except metadata.PackageNotFoundError:
        return "checkout"
