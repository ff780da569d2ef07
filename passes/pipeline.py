"""A pipeline as a value: ordered named stages of ordered named passes.

As text, one stage after the other, spaces and newlines free, comments from a # to the end of a line::

    xt: fold-constants, simplify-shapes; linalg: xt-to-linalg, mlir(canonicalize, cse)

A text without a stage name is one nameless stage. Every edit returns a new pipeline.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from xcc.diagnostics import UserError
from xcc.passes.base import Pass, parse_pass

if TYPE_CHECKING:
    from xcc._mlir import Module
    from xcc.passes.base import PassContext
    from xcc.targets.base import Chip

MODEL_STAGES = ("xt", "kernels")
"""The stages that run on the whole module, first; those behind them run on each kernel alone."""

MAIN_STAGES = ("memory", "host")
"""The stages that run on what is left of the module when the kernels are compiled, @main."""


@dataclass(frozen=True)
class Stage:
    """A named list of passes. `name` is also the name of the IR that the stage ends with."""

    name: str
    passes: tuple[Pass, ...] = ()

    def __str__(self) -> str:
        head = f"{self.name}: " if self.name else ""
        return head + ", ".join(str(p) for p in self.passes)


@dataclass
class Pipeline:
    """Named stages in order. `insert`, `replace` and `drop` edit it in place and return it; copy() comes first
    where the old one is still needed."""

    stages: tuple[Stage, ...] = ()

    def __post_init__(self) -> None:
        names = [s.name for s in self.stages]
        for name in names:
            if names.count(name) > 1:
                raise UserError(f"pipeline: stage '{name}' is there twice")

    def __str__(self) -> str:
        return "; ".join(str(s) for s in self.stages)

    def __iter__(self) -> Iterator[Stage]:
        return iter(self.stages)

    def table(self, chip: Chip | None = None) -> str:
        """The pipeline with one pass a line; :meth:`parse` reads it too. With a `chip` (targets.base.Chip) comments
        say which passes have nothing to do for it."""
        return "".join(f"{s.name}:\n{''.join(_lines(s, chip))}" for s in self.stages)

    def names(self) -> tuple[str, ...]:
        """The names of all passes, in order; an upstream pass is ``mlir(...)``."""
        return tuple(_key(p) for s in self.stages for p in s.passes)

    def stage_names(self) -> tuple[str, ...]:
        return tuple(s.name for s in self.stages)

    def __getitem__(self, stage: str) -> Stage:
        return self.stages[self._stage_index(stage)]

    def copy(self) -> Pipeline:
        """Another pipeline of the same stages."""
        return Pipeline(self.stages)

    def upto(self, stage: str) -> Pipeline:
        """The stages up to `stage`, it included."""
        return Pipeline(self.stages[:self._stage_index(stage) + 1])

    def after(self, stage: str) -> Pipeline:
        """The stages behind `stage`."""
        return Pipeline(self.stages[self._stage_index(stage) + 1:])

    def model_part(self) -> Pipeline:
        return Pipeline(tuple(s for s in self.stages if s.name in MODEL_STAGES))

    def kernel_part(self) -> Pipeline:
        return Pipeline(tuple(s for s in self.stages if s.name not in (*MODEL_STAGES, *MAIN_STAGES)))

    def main_part(self) -> Pipeline:
        return Pipeline(tuple(s for s in self.stages if s.name in MAIN_STAGES))

    def insert(self, new: Pass | str, *, before: str = "", after: str = "", stage: str = "") -> Pipeline:
        """Adds `new` before or after a named pass, or at the end of `stage`."""
        if sum(map(bool, (before, after, stage))) != 1:
            raise UserError("pipeline insert: give exactly one of before=, after= and stage=")
        added = _as_pass(new)
        if stage:
            at = self._stage_index(stage)
            return self._with(at, (*self.stages[at].passes, added))
        at, i = self._find(before or after)
        i += bool(after)
        passes = self.stages[at].passes
        return self._with(at, (*passes[:i], added, *passes[i:]))

    def replace(self, name: str, new: Pass | str) -> Pipeline:
        """Puts `new` in the place of the pass called `name`."""
        at, i = self._find(name)
        passes = self.stages[at].passes
        return self._with(at, (*passes[:i], _as_pass(new), *passes[i + 1:]))

    def drop(self, name: str) -> Pipeline:
        """Leaves the pass called `name` out."""
        at, i = self._find(name)
        passes = self.stages[at].passes
        return self._with(at, (*passes[:i], *passes[i + 1:]))

    @staticmethod
    def parse(text: str) -> Pipeline:
        """Reads the text form; UserError names what it cannot read."""
        stages = []
        for part in _split(re.sub(r"#.*", "", text), ";"):
            head = re.match(r"([A-Za-z_][\w-]*)\s*:", part)
            body = part[head.end():] if head else part
            stages.append(Stage(head[1] if head else "", tuple(_parse_pass(p) for p in _split(body, ","))))
        return Pipeline(tuple(stages))

    def run(self, module: Module, ctx: PassContext) -> None:
        """Runs every pass on `module` in place, without the checks of the compiler's stage loop."""
        for stage in self.stages:
            for p in stage.passes:
                p.run(module, ctx)

    def _stage_index(self, stage: str) -> int:
        for i, s in enumerate(self.stages):
            if s.name == stage:
                return i
        raise UserError(f"there is no stage '{stage}'; stages are {', '.join(self.stage_names()) or 'none'}")

    def _find(self, name: str) -> tuple[int, int]:
        """Where the pass `name` is; ``stage/name`` picks one of several of the same name."""
        wanted, _, plain = name.partition("/") if "/" in name and "(" not in name.split("/")[0] else ("", "", name)
        hits = [(i, j) for i, s in enumerate(self.stages) if wanted in ("", s.name)
                for j, p in enumerate(s.passes) if plain in (p.name, _key(p))]
        if not hits:
            raise UserError(f"the pipeline has no pass '{name}'; it has {', '.join(self.names())}")
        if len(hits) > 1:
            places = ", ".join(f"{self.stages[i].name}/{plain}" for i, _ in hits)
            raise UserError(f"the pipeline has '{name}' {len(hits)} times ({places}); name it as stage/pass")
        return hits[0]

    def _with(self, at: int, passes: Sequence[Pass]) -> Pipeline:
        changed = replace(self.stages[at], passes=tuple(passes))
        self.stages = (*self.stages[:at], changed, *self.stages[at + 1:])
        return self


def _lines(stage: Stage, chip: Chip | None) -> Iterator[str]:
    """A line a pass; of a stage without any, its end alone."""
    for i, p in enumerate(stage.passes):
        idle = f"    # nothing to do on {chip.name}" if chip is not None and not p.acts_on(chip) else ""
        yield f"    {p}{';' if i + 1 == len(stage.passes) else ','}{idle}\n"
    if not stage.passes:
        yield ";\n"


def _key(p: Pass) -> str:
    return str(p) if p.name == "mlir" else p.name


def _as_pass(p: Pass | str) -> Pass:
    if not isinstance(p, str | Pass):
        raise UserError(f"a pass is a Pass or its text, not a {type(p).__name__}")
    return _parse_pass(p) if isinstance(p, str) else p


def _parse_pass(text: str) -> Pass:
    if text.startswith("mlir(") and text.endswith(")"):
        from xcc.passes.upstream import Upstream

        return Upstream(pipeline=text[5:-1].strip())
    return parse_pass(text)


@cache
def _split(text: str, separator: str) -> tuple[str, ...]:
    """The parts of `text` between separators that are outside all brackets, stripped, empty ones left out."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        if c in "({[<":
            depth += 1
        elif c in ")}]>":
            depth -= 1
            if depth < 0:
                raise UserError(f"pipeline '{text}': '{c}' at {i} closes nothing")
        elif c == separator and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    if depth:
        raise UserError(f"pipeline '{text}': a bracket is not closed")
    return tuple(p.strip() for p in (*parts, text[start:]) if p.strip())
