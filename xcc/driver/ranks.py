"""One artifact for all ranks of a mesh: ``--mesh=tp:2``.

The model is compiled once a rank, with the pass ``shard`` making the rank's module of it; kernels of equal text come
from the cache. Rank 0's program and code are the artifact's own, those of rank R lie under ``ranks/R/``, a member that
is the same as rank 0's only there. Weights are stored once where two ranks hold the same bytes under the same name;
they are mapped, so that a rank reads no more than its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from xcc.compiler import NUMBERS, Compiled, Observer
from xcc.diagnostics import CompilerBug, UserError
from xcc.driver.mesh_choice import choose_mesh, wants_choice
from xcc.driver.sources import load_source
from xcc.driver.updates import mark_updates
from xcc.driver.versions import compile_versions, stored_name
from xcc.frontends.torch.program import TorchProgram
from xcc.options import CompileOptions
from xcc.passes.base import PassContext
from xcc.passes.pipeline import Pipeline
from xcc.passes.xt.sizes.equal_dims import note_equal_dims
from xcc.runtime.artifact import Artifact
from xcc.runtime.mesh import Mesh
from xcc.runtime.program import Collective, For, If, Program, Statement, While, to_json
from xcc.runtime.ranks import FOLDER
from xcc.targets.base import chip_of, get_target
from xcc.targets.chip_spec import split_specs

__all__ = ["combine_ranks", "compile_ranks", "sharding_lines"]


def compile_ranks(model: Any, options: CompileOptions, pipeline: Pipeline | None = None, stop: str = "",
                  observer: Observer | None = None, emit: bool = False) -> Compiled:
    """:func:`xcc.driver.versions.compile_versions`, for every rank of the mesh that the options name; where a stage or
    code is asked for, rank 0's."""
    if wants_choice(options):
        options = choose_mesh(model, options)[0]
    mesh = Mesh.parse(options.mesh)
    together = _mesh_of_program(model)
    if together.size > 1:
        return _compile_once(model, together, options, pipeline, stop, observer, emit)
    if mesh.size == 1:
        return compile_versions(model, options, pipeline, stop, observer, emit)
    _check(options)
    if stop or emit:
        return compile_versions(model, options, pipeline, stop, observer, emit)
    parts = []
    for rank in range(mesh.size):
        dump = f"{options.dump_stages}/rank{rank}" if options.dump_stages else ""
        own = replace(options, rank=rank, dump_stages=dump, verbose=options.verbose if rank == 0 else 0)
        parts.append(compile_versions(model, own, pipeline, "", observer))
    artifacts = [p.artifact for p in parts if p.artifact is not None]
    return Compiled(artifact=combine_ranks(mesh, artifacts), kernels=parts[0].kernels,
                    files=tuple(dict.fromkeys(f for p in parts for f in p.files)))


def _mesh_of_program(model: Any) -> Mesh:
    """The mesh of a program that was written for several ranks, which run it together; one rank for any other."""
    return Mesh.parse(model.graph.mesh) if isinstance(model, TorchProgram) else Mesh()


def _compile_once(model: Any, mesh: Mesh, options: CompileOptions, pipeline: Pipeline | None, stop: str,
                  observer: Observer | None, emit: bool) -> Compiled:
    """One program for all ranks of `mesh`, with the weights that this one has."""
    if options.mesh:
        raise UserError(f"mesh {options.mesh}: the program has collectives of its own, among ranks of the mesh {mesh}: "
                        "compile it without another")
    _check(replace(options, mesh=str(mesh)))
    compiled = compile_versions(model, options, pipeline, stop, observer, emit)
    if compiled.artifact is None:
        return compiled
    artifact = combine_ranks(mesh, [compiled.artifact] * mesh.size)
    return replace(compiled, artifact=replace(artifact, manifest=artifact.manifest | {"own_weights": True}))


def _check(options: CompileOptions) -> None:
    if len(split_specs(options.chip)) > 1:
        raise UserError(f"mesh {options.mesh}: an artifact for several ranks is for one chip, not for {options.chip}")
    if options.verify == NUMBERS:
        raise UserError(f"--verify={NUMBERS} evaluates a model on one rank, not on the mesh {options.mesh}")


def combine_ranks(mesh: Mesh, artifacts: Sequence[Artifact]) -> Artifact:
    """One artifact of those of all ranks, in order."""
    first = artifacts[0]
    weights, members = dict(first.weights), dict(first.members)
    spoken: dict[int, tuple[int, list[Any]]] = {}
    for rank, artifact in enumerate(artifacts):         # ranks of one stage say the same
        alike, said = spoken.setdefault(mesh.place(rank, ["pp"]), (rank, _spoken(artifact.program)))
        if said != _spoken(artifact.program):
            raise CompilerBug(f"rank {rank} communicates otherwise than rank {alike}")
    for rank, other in enumerate(artifacts[1:], 1):
        names = {name: stored_name(name, array, f"rank{rank}", weights) for name, array in other.weights.items()}
        buffers = tuple(replace(b, name=names[b.name]) if b.kind == "weight" else b for b in other.program.buffers)
        states = tuple(replace(s, initial=names.get(s.initial, "")) for s in other.program.states)
        program = to_json(replace(other.program, buffers=buffers, states=states))
        members[f"{FOLDER}/{rank}/program.json"] = json.dumps(program, separators=(",", ":")).encode()
        members |= {f"{FOLDER}/{rank}/{path}": data for path, data in other.members.items()
                    if bytes(data) != bytes(first.members.get(path, b""))}
    manifest = first.manifest | {"mesh": [list(axis) for axis in mesh.axes], "ranks": [_facts(a) for a in artifacts]}
    return Artifact(manifest, first.program, members, weights)


def _facts(a: Artifact) -> dict[str, Any]:
    return {"kernels": a.manifest["kernels"], "weights": sum(np.asarray(w).nbytes for w in a.weights.values())}


def _spoken(program: Program) -> list[Any]:
    """What a program does together with other ranks, in order: it must be the same in all."""

    def visit(body: Iterable[Statement]) -> Iterable[Any]:
        for s in body:
            if isinstance(s, Collective):
                b = program.buffers[s.source]
                yield s.kind, s.axes, s.combine, s.pairs, s.root, b.dtype, tuple(map(str, b.shape))
            for inner in ((s.then, s.orelse) if isinstance(s, If) else (s.before, s.body) if isinstance(s, While)
                          else (s.body,) if isinstance(s, For) else ()):
                yield list(visit(inner))

    return list(visit(program.body))


def sharding_lines(model: Any, options: CompileOptions, pipeline: Pipeline | None = None) -> list[str]:
    """What ``--print-sharding`` prints: for each axis the collectives, where, of how many bytes."""
    target = get_target(options.target)
    chip = chip_of(target, split_specs(options.chip)[0])
    source = load_source(model, options)
    if source.stage:
        raise UserError(f"{source.name}: a model is sharded in stage xt, this is behind '{source.stage}'")
    note_equal_dims(source.module)
    mark_updates(source.module, dict(options.updates))
    lines: list[str] = []
    ctx = PassContext(weights=source.weights, chip=chip, options=replace(options, verbose=1), verbose=lines.append)
    for p in (pipeline or target.pipeline(options)).stages[0].passes:
        start = len(lines)
        p.run(source.module, ctx)
        if p.name == "shard":
            return lines[start:]
    raise UserError("the pipeline has no pass 'shard'")
