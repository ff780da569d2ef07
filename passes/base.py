"""What a pass is: a frozen dataclass whose fields are its options.

A pass prints as ``name{key=value other-key=a,b}`` and parses back from that text. ``@register_pass`` makes it all of
that; built-in and user passes use the same decorator.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from xcc.diagnostics import UserError

if TYPE_CHECKING:
    from xcc._mlir import Module
    from xcc.options import CompileOptions
    from xcc.targets.base import Chip
    from xcc.weights import WeightStore

__all__ = ["Pass", "PassContext", "get_pass", "parse_pass", "register_pass", "registered_passes"]


@dataclass(frozen=True)
class PassContext:
    """What a pass may use beside the module: the weights, the chip and the options of this compilation."""

    weights: WeightStore | None = None
    chip: Chip = None                   # type: ignore[assignment]      # passes of a model for no chip do not ask
    options: CompileOptions = None      # type: ignore[assignment]      # passes that run by themselves do not ask
    verbose: Callable[[str], None] = lambda _: None


@dataclass(frozen=True)
class Pass:
    """Base of all passes. Subclasses implement `run`; the docstring is the help text."""

    name: ClassVar[str] = ""

    def run(self, module: Module, ctx: PassContext) -> None:
        """Changes `module` (an ir.Module) in place; its context and a location are set, and `acts_on` was asked."""
        raise NotImplementedError(f"pass '{self.name}' has no run method")

    def acts_on(self, chip: Chip | None) -> bool:
        """Whether the pass has anything to do for this chip."""
        return True

    def __str__(self) -> str:
        parts = []
        for f in dataclasses.fields(self):
            value = getattr(self, f.name)
            if value != f.default and not (f.default_factory is not dataclasses.MISSING
                                           and value == f.default_factory()):
                parts.append(f"{f.name.replace('_', '-')}={_to_text(value)}")
        return self.name + ("{" + " ".join(parts) + "}" if parts else "")


def _to_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (tuple, list)):
        return ",".join(_to_text(v) for v in value)
    return str(value)


def _from_text(text: str, hint: Any, where: str) -> Any:
    origin = typing.get_origin(hint)
    try:
        if hint is bool:
            return {"true": True, "1": True, "false": False, "0": False}[text]
        if hint is int:
            return int(text)
        if hint is float:
            return float(text)
        if origin is tuple:
            item = typing.get_args(hint)[0]
            return tuple(_from_text(t, item, where) for t in text.split(",") if t)
        return text
    except (KeyError, ValueError):
        wanted = getattr(hint, "__name__", str(hint))
        raise UserError(f"{where}: '{text}' is not of type {wanted}") from None


_PASSES: dict[str, type[Pass]] = {}


@typing.dataclass_transform(frozen_default=True)
def register_pass(cls: type[Pass]) -> type[Pass]:
    """Makes `cls` a frozen dataclass, named after the class (``FoldScales``: fold-scales) where it has no `name`, and
    adds it to the table of passes; a name taken twice is an error."""
    if "name" not in cls.__dict__:
        cls.name = re.sub(r"(?<!^)(?=[A-Z])", "-", cls.__name__).lower()
    if cls.name in _PASSES and _PASSES[cls.name].__qualname__ != cls.__qualname__:
        raise ValueError(f"pass '{cls.name}' is registered twice")
    if "run" in cls.__dict__:
        cls.run = _in_context(cls.run)      # type: ignore[method-assign, assignment]
    _PASSES[cls.name] = cls if "__dataclass_fields__" in cls.__dict__ else dataclass(frozen=True)(cls)
    parse_pass.cache_clear()
    return cls


def _in_context(run: Callable[[Any, Module, PassContext], None]) -> Callable[[Any, Module, PassContext], None]:
    @functools.wraps(run)
    def within(self: Pass, module: Module, ctx: PassContext) -> None:
        from xcc._mlir import ir

        if self.acts_on(ctx.chip):
            with module.context, ir.Location.unknown():
                run(self, module, ctx)

    return within


def registered_passes() -> dict[str, type[Pass]]:
    """Every known pass by name, built-in ones imported."""
    from xcc.passes import registry

    registry.load_all()
    return dict(sorted(_PASSES.items()))


def get_pass(name: str) -> type[Pass]:
    """The pass class called `name`; UserError with the nearest names when there is none."""
    from xcc.passes import registry

    if name not in _PASSES:
        registry.load(name)
    if name not in _PASSES:
        import difflib

        if any(c.isspace() for c in name):
            raise UserError(f"there is no pass '{' '.join(name.split())}': a comma goes between passes")
        near = difflib.get_close_matches(name, list(_PASSES) + list(registry.BUILTIN), 3)
        hint = f"; did you mean {', '.join(near)}?" if near else ""
        raise UserError(f"there is no pass '{name}'{hint}")
    return _PASSES[name]


@functools.cache
def parse_pass(text: str) -> Pass:
    """Reads ``name`` or ``name{key=value ...}``."""
    name, brace, rest = text.strip().partition("{")
    cls = get_pass(name.strip())
    if not brace:
        return cls()
    if not rest.endswith("}"):
        raise UserError(f"pass '{name}': missing '}}' after its options")
    hints = typing.get_type_hints(cls)
    known = {f.name.replace("_", "-"): f.name for f in dataclasses.fields(cls)}
    values: dict[str, bool] = {}
    for item in rest[:-1].split():
        key, eq, value = item.partition("=")
        if key not in known:
            raise UserError(f"pass '{name}' has no option '{key}'; it has {', '.join(known) or 'none'}")
        values[known[key]] = _from_text(value if eq else "true", hints[known[key]], f"pass '{name}' option '{key}'")
    return cls(**values)
