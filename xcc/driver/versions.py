"""Several code versions in one artifact: ``--chip=x86-64-v4,x86-64-v3``, ``--chip=sm_80,sm_90a``.

The model is compiled for each chip. The first is the artifact itself; the others' programs and code lie under
``versions/CHIP/``. Weights are stored once where two versions hold the same bytes under the same name. The runtime
takes the first version that the CPU can run (:mod:`xcc.runtime.versions`), or the one for the GPU.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from xcc.compiler import Compiled, Observer, compile_model
from xcc.diagnostics import UserError
from xcc.options import CompileOptions
from xcc.passes.pipeline import Pipeline
from xcc.runtime.artifact import Artifact
from xcc.runtime.program import to_json
from xcc.runtime.versions import FOLDER
from xcc.targets.base import Chip, chip_of, get_target
from xcc.targets.chip_spec import split_specs

__all__ = ["combine", "compile_versions", "stored_name"]


def compile_versions(model: Any, options: CompileOptions, pipeline: Pipeline | None = None, stop: str = "",
                     observer: Observer | None = None, emit: bool = False) -> Compiled:
    """:func:`xcc.compiler.compile_model` for every chip that ``options.chip`` names.

    Those with the widest vectors come first, of these those with the most matrix instructions.
    """
    specs = split_specs(options.chip)
    if len(specs) == 1:
        return compile_model(model, options, pipeline, stop, observer, emit)
    if stop:
        raise UserError(f"--emit={stop}: stages are written for one chip, not for {options.chip}")
    target = get_target(options.target)
    chips: dict[str, tuple[Chip, str]] = {}
    for spec in specs:
        chip = chip_of(target, spec)
        if chips.setdefault(chip.name, (chip, spec))[0] != chip:
            raise UserError(f"--chip={options.chip}: '{chips[chip.name][1]}' and '{spec}' are both {chip.name}, with "
                            "different attributes: the runtime cannot tell them apart; leave one out")
    parts = []
    for chip, spec in sorted(chips.values(), key=lambda c: (-c[0].vector_bytes, -len(c[0].matrix))):
        dump = f"{options.dump_stages}/{chip.name}" if options.dump_stages else ""
        parts.append(compile_model(model, replace(options, chip=spec, dump_stages=dump), pipeline, "", observer))
    artifacts = [p.artifact for p in parts if p.artifact is not None]
    return Compiled(artifact=combine(artifacts), kernels=tuple(k for p in parts for k in p.kernels),
                    files=tuple(dict.fromkeys(f for p in parts for f in p.files)))


def combine(artifacts: Sequence[Artifact]) -> Artifact:
    """One artifact of several for different chips, the first being the first choice."""
    first, *others = artifacts
    weights, members = dict(first.weights), dict(first.members)
    versions = [_facts(first)]
    for other in others:
        chip = str(other.manifest["chip"])
        names = {name: stored_name(name, array, chip, weights) for name, array in other.weights.items()}
        buffers = tuple(replace(b, name=names[b.name]) if b.kind == "weight" else b for b in other.program.buffers)
        states = tuple(replace(s, initial=names.get(s.initial, "")) for s in other.program.states)
        program = to_json(replace(other.program, buffers=buffers, states=states))
        members[f"{FOLDER}/{chip}/program.json"] = json.dumps(program, separators=(",", ":")).encode()
        members |= {f"{FOLDER}/{chip}/{path}": data for path, data in other.members.items()}
        versions.append(_facts(other))
    manifest = first.manifest | {"chip": ",".join(str(v["chip"]) for v in versions), "versions": versions}
    return Artifact(manifest, first.program, members, weights)


def stored_name(name: str, array: np.ndarray[Any, Any], whose: str, weights: dict[str, np.ndarray[Any, Any]]) -> str:
    """The name under which `weights` holds the bytes of `array`, added where they are not there yet."""
    old = weights.get(name)
    if old is None or old.dtype != array.dtype or old.shape != array.shape or old.tobytes() != array.tobytes():
        name = name if old is None else f"{name}@{whose}"
        weights[name] = array
    return name


def _facts(a: Artifact) -> dict[str, Any]:
    return {**{key: a.manifest[key] for key in ("chip", "chip_attributes", "kernels")},
            "weights": sum(w.nbytes for w in a.weights.values())}
