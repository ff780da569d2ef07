"""What the user may choose about a compilation: one frozen dataclass, checked when made."""

from __future__ import annotations

import dataclasses
import json
import operator
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xcc.diagnostics import UserError
from xcc.runtime.mesh import Mesh

__all__ = ["CompileOptions", "PRECISIONS", "parse_dim", "parse_fix", "parse_target", "parse_update"]

PRECISIONS = ("", "f32", "f16", "bf16", "tf32")
MOST = 1 << 63
_KINDS: dict[str, type] = {"str": str, "int": int, "bool": bool}


@dataclass(frozen=True)
class CompileOptions:
    """Options of one compilation.

    Attributes:
        target: "cpu", "nvptx", "amdgcn": a folder of targets/.
        chip: a name of the target's chip table, with attributes to change: "znver4,cores=8", for cpu also several
            ("x86-64-v4,x86-64-v3"); "native", and "", is this machine's own (or what the target assumes).
        dims: bounds of symbolic dims, (name, low, high), both included; low == high fixes the dim.
        fix: inputs that become constants, (name, JSON text of a number or of nested lists); a model needs it whose
            shapes or branches depend on the value of an input.
        updates: outputs that take the place of inputs, (output, input): a run writes to the caller's array.
        precision: "" keeps the model's types; else the type that its f32 compute is done in.
        target_options: (key, value) pairs from ``--target=cpu,key=value``, read by the target.
        mesh: axes of ranks that share the work, "dp:2,tp:4": data parallel along dp, tensor parallel along others.
        shard: "PATTERN=AXIS:DIM" or "PATTERN=whole" for inputs, outputs and weights; what nothing is said of is chosen.
        rank: which rank's program is made where one is made alone.
        threads: CPU threads that the compiled model uses; 0 is one a physical core.
        verify: "stage" runs MLIR's verifier after each stage, "each" after each pass, a stage's name also after each
            pass of that stage. "numbers" evaluates the model on random inputs after each pass up to stage kernels.
        winograd: convolutions may take Winograd's form (cpu) where that is faster: rounding errors are larger.
        tuning: a tuning database (text file) whose schedules win over those that come with xcc; "" for none.
        keep_ir: stores the kernels as they are after the stage ``gpu`` (``cpu``) in the artifact, for the interpreter.
        dump_stages: a folder that gets the module after each stage, "" for none.
        jobs: kernel compiler processes, 0 is one a core.
        isolate: models and kernels compile in processes of their own, so that a crash of MLIR or LLVM becomes an error.
            False: in this process, one after another; for tests that compile thousands of small models.
        cache: use the on-disk cache of compiled kernels and finished artifacts.
        debug_patterns: passes report why a pattern did not apply.
        verbose: 0 silent, 1 what was fused and how many bytes move, 2 also each pass.
    """

    target: str = "cpu"
    chip: str = ""
    dims: tuple[tuple[str, int, int], ...] = ()
    fix: tuple[tuple[str, str], ...] = ()
    updates: tuple[tuple[str, str], ...] = ()
    precision: str = ""
    target_options: tuple[tuple[str, str], ...] = ()
    mesh: str = ""
    shard: tuple[str, ...] = ()
    rank: int = 0
    threads: int = 0
    verify: str = "stage"
    winograd: bool = True
    tuning: str = ""
    keep_ir: bool = False
    dump_stages: str = ""
    jobs: int = 0
    isolate: bool = True
    cache: bool = True
    debug_patterns: bool = False
    verbose: int = 0

    def __post_init__(self) -> None:
        from xcc.targets.base import get_target

        self._check_types()
        known = get_target(self.target).options
        for key, value in self.target_options:
            if value not in known.get(key, ()):
                listing = ", ".join(f"{k}={'|'.join(values)}" for k, values in known.items()) or "none"
                hint = f"; the chip is said beside it: --chip={value}, chip=\"{value}\"" if key == "chip" else ""
                raise UserError(f"target '{self.target}' has no option '{key}={value}'; it has {listing}{hint}")
        if self.precision not in PRECISIONS:
            raise UserError(f"precision '{self.precision}' is none of {', '.join(PRECISIONS[1:])}")
        for name in ("threads", "jobs", "verbose"):
            if getattr(self, name) < 0:
                raise UserError(f"{name} must not be negative, it is {getattr(self, name)}")
        for name, low, high in self.dims:
            if not -MOST <= low <= high < MOST:
                raise UserError(f"dim {name}={low}..{high}: bounds must be low <= high < 2^63")
        for name, text in self.fix:
            _check_value(name, text)
        ranks = Mesh.parse(self.mesh).size
        if not 0 <= self.rank < ranks:
            raise UserError(f"rank {self.rank}: the mesh has {ranks} ranks, from 0 on")
        if self.shard and ranks == 1:
            raise UserError(f"shard {', '.join(self.shard)}: give a mesh, as in --mesh=tp:2")

    def _check_types(self) -> None:
        for field in dataclasses.fields(self):
            if not isinstance(getattr(self, field.name), _KINDS.get(str(field.type), object)):
                raise UserError(f"{field.name} is {getattr(self, field.name)!r}, which is no {field.type}")

    @property
    def workers(self) -> int:
        """Kernel compiler processes."""
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return self.jobs or cores

    @property
    def fixed(self) -> dict[str, Any]:
        """The values of `fix`: numbers and nested lists by input name."""
        return {name: json.loads(text) for name, text in self.fix}

    def option(self, key: str, default: str = "") -> str:
        """The target option `key`."""
        return dict(self.target_options).get(key, default)

    def code_key(self) -> str:
        """The options that change the code of a kernel for a chip, as text: part of the cache key."""
        try:
            tuning = Path(self.tuning).read_text() if self.tuning else ""
        except (OSError, UnicodeDecodeError) as e:
            raise UserError(f"{self.tuning}: cannot read the tuning database: {e}") from None
        return repr((self.target, self.precision, sorted(self.target_options), self.threads, self.keep_ir,
                     tuning))

    @staticmethod
    def make(target: str = "cpu", dims: Mapping[str, Any] | None = None,
             fix: Mapping[str, Any] | None = None, updates: Mapping[str, str] | None = None,
             mesh: Mapping[str, int] | str = "", shard: Mapping[str, str] | None = None,
             **options: Any) -> CompileOptions:
        """From what :func:`xcc.compile` takes.

        ``target="cpu,key=value"``, ``dims={"batch": (1, 64), "seq": 128}``, ``fix={"rate": 16000}`` with numbers, lists
        or arrays, ``updates={"present": "past"}``, ``mesh={"tp": 2}``, ``shard={"h.*.weight": "tp:0"}``.
        """
        known = {f.name for f in dataclasses.fields(CompileOptions)}
        for key in options:
            if key not in known:
                raise UserError(f"there is no option '{key}'; options are {', '.join(sorted(known))}")
        for what, mapping in (("dims", dims), ("fix", fix), ("updates", updates), ("shard", shard)):
            if mapping is not None and not isinstance(mapping, Mapping):
                raise UserError(f"{what} is {mapping!r}; give a dict by name")
        if not isinstance(target, str):
            raise UserError(f"target is {target!r}; give a name")
        name, extra = parse_target(target)
        bounds = []
        for dim, value in (dims or {}).items():
            try:
                low, high = value if isinstance(value, (tuple, list)) else (value, value)
                bounds.append((str(dim), operator.index(low), operator.index(high)))
            except (TypeError, ValueError):
                raise UserError(f"dims['{dim}'] is {value!r}; give a number or (low, high)") from None
        values = tuple((str(key), _json(str(key), value)) for key, value in (fix or {}).items())
        pairs = tuple((str(output), str(source)) for output, source in (updates or {}).items())
        axes = str(Mesh.of(mesh)) if isinstance(mesh, Mapping) else mesh
        placed = tuple(f"{pattern}={where}" for pattern, where in (shard or {}).items())
        return CompileOptions(target=name, target_options=extra, dims=tuple(bounds), fix=values, updates=pairs,
                              mesh=axes, shard=placed, **options)


def parse_target(text: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """``cpu,key=value,flag`` as ("cpu", (("key", "value"), ("flag", "1")))."""
    name, *extra = text.split(",")
    pairs = [item.partition("=") for item in extra if item]
    return name, tuple((key, value if eq else "1") for key, eq, value in pairs)


def parse_dim(text: str) -> tuple[str, int, int]:
    """``batch=4`` or ``batch=1..64`` as (name, low, high)."""
    name, eq, bounds = text.rpartition("=")
    low, dots, high = bounds.partition("..")
    try:
        if not (eq and name):
            raise ValueError
        return name, int(low), int(high if dots else low)
    except ValueError:
        raise UserError(f"--dim {text}: write NAME=SIZE or NAME=LOW..HIGH") from None


def parse_fix(text: str) -> tuple[str, str]:
    """``rate=16000`` or ``shape=[2,3]`` as (name, JSON text)."""
    name, eq, value = text.partition("=")
    if not (eq and name):
        raise UserError(f"--fix {text}: write NAME=VALUE, the value a number or [..., ...]")
    _check_value(name, value)
    return name, value


def parse_update(text: str) -> tuple[str, str]:
    """``present.0.key=past.0.key`` as (output, input)."""
    output, eq, source = text.partition("=")
    if not (output and source):
        raise UserError(f"--update {text}: write OUTPUT=INPUT")
    return output, source


def _json(name: str, value: Any) -> str:
    """`value`, a number, an array or nested sequences, as JSON."""
    try:
        return json.dumps(value.tolist() if hasattr(value, "tolist") else value)
    except (TypeError, ValueError):
        raise UserError(f"fix['{name}'] is {value!r}; give a number, nested lists or an array") from None


def _check_value(name: str, text: str) -> None:
    def is_value(x: Any) -> bool:
        return all(map(is_value, x)) if isinstance(x, list) else isinstance(x, int | float)

    try:
        if not is_value(json.loads(text)):
            raise ValueError
    except (ValueError, RecursionError):
        raise UserError(f"fix {name}={text}: the value must be a number or nested lists of numbers") from None
