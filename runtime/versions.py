"""The code versions of an artifact, and which one runs on this CPU: the first whose instructions it has.

``XCC_CPU_VERSION`` names one that is taken instead. GPUs choose in :mod:`xcc.runtime.cuda` and :mod:`xcc.runtime.hip`.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from xcc.diagnostics import UserError
from xcc.runtime.program import Program
from xcc.runtime.program_reader import program_from_json
from xcc.runtime.tile_registers import allow_tiles

__all__ = ["FOLDER", "Version", "choose", "versions_of"]

FOLDER = "versions"
"""The folder in an artifact that holds the versions after the first."""


@dataclass(frozen=True)
class Version:
    """The program and code for one chip; `kernels` is what the manifest says of them."""

    chip: str
    program: Program
    members: Mapping[str, Any]
    kernels: Sequence[Mapping[str, Any]] = ()

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """Of a CPU: ``kernels/cpu.json``: triple, cpu, threads, requires, parallel. UserError if it is not readable."""
        return _facts(self.members)


def choose(program: Program, members: Mapping[str, Any], weights: Mapping[str, Any],
           manifest: Mapping[str, Any]) -> Version:
    """The version to run; UserError says what this machine lacks for each."""
    versions = versions_of(program, members, weights, manifest)
    named = os.environ.get("XCC_CPU_VERSION", "")
    if named and len(versions) > 1:
        versions = [v for v in versions if v.chip == named]
        if not versions:
            raise UserError(f"XCC_CPU_VERSION is '{named}'; the model holds code for {manifest.get('chip')}")
    lacks = [lacking(v.facts) for v in versions]
    for version, lack in zip(versions, lacks, strict=True):
        if not lack:
            return version
    if len(versions) == 1:
        raise UserError(f"the model is compiled for {versions[0].facts['cpu']}: {lacks[0]}; compile it again, or with "
                        "--chip=x86-64-v3")
    reasons = "; ".join(f"{v.chip}: {lack}" for v, lack in zip(versions, lacks, strict=True))
    raise UserError(f"none of the model's code versions runs on this machine ({reasons}); compile it for this chip")


def lacking(facts: Mapping[str, Any]) -> str:
    """What this machine lacks to run code with these facts; "" when it can."""
    machine = platform.machine().lower().replace("amd64", "x86_64").replace("arm64", "aarch64")
    wanted = str(facts["triple"]).split("-")[0].replace("arm64", "aarch64")
    if machine != wanted:
        return f"it is for {wanted} and this machine is {machine}"
    flags = _cpu_flags()
    requires = facts.get("requires", ())
    missing = [r for r in requires if flags is not None and r not in flags]
    if missing:
        return f"this CPU lacks {', '.join(missing)}"
    return "this system does not give programs AMX's registers" if "amx_tile" in requires and not allow_tiles() else ""


def _cpu_flags() -> set[str] | None:
    """CPU flags as /proc/cpuinfo names them; None where there is no such file."""
    try:
        with open("/proc/cpuinfo") as f:
            return next((set(line.split()) for line in f if line.startswith(("flags", "Features"))), None)
    except OSError:
        return None


def versions_of(program: Program, members: Mapping[str, Any], weights: Mapping[str, Any],
                manifest: Mapping[str, Any]) -> list[Version]:
    """All versions, in the order of preference; UserError for one that does not belong to the model."""
    listed = manifest.get("versions", [])
    facts = [v for v in listed if isinstance(v, dict)] if isinstance(listed, list) else []
    first = facts[0] if facts else manifest
    found = [Version(str(first.get("chip")), program, members, first.get("kernels", ()))]
    for fact in facts[1:]:
        chip = str(fact.get("chip"))
        prefix = f"{FOLDER}/{chip}/"
        own = {path.removeprefix(prefix): data for path, data in members.items() if path.startswith(prefix)}
        try:
            data = json.loads(bytes(own.pop("program.json")))
        except (ValueError, RecursionError) as e:
            raise UserError(f"{prefix}program.json: not readable: {e}") from None
        other = program_from_json(data)
        if list(_signature(other)) != list(_signature(program)):
            raise UserError(f"{prefix}program.json: its inputs and outputs are not those of the model")
        for name in other.weight_names():
            if name not in weights:
                raise UserError(f"{prefix}program.json uses weight '{name}', which the file does not have")
        found.append(Version(chip, other, own, fact.get("kernels", ())))
    return found


def _facts(members: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        facts = json.loads(bytes(members["kernels/cpu.json"]))
        requires = facts.get("requires", [])
        if {"triple", "cpu"} <= set(facts) and isinstance(requires, list) and all(isinstance(r, str) for r in requires):
            return dict(facts)
    except (ValueError, RecursionError, AttributeError):
        pass
    raise UserError("the model's kernels/cpu.json is not readable: compile it again")


def _signature(p: Program) -> Iterator[Any]:
    yield set(p.symbols), [(p.outputs.index(output), p.inputs.index(source)) for output, source in p.updates]
    for i in (*p.inputs, *p.outputs, *(s.buffer for s in p.states)):
        b = p.buffers[i]
        yield (b.name, b.dtype, tuple(map(str, b.shape)))
