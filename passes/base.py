"""What a pass is: a frozen dataclass whose fields are its options.

A pass prints as ``name{key=value other-key=a,b}`` and parses back from that text. Register one with
``@register_pass``; built-in and user passes use the same decorator.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
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
    """Base of all passes. Subclasses set `name` and implement `run`; the docstring is the help text."""

    name: ClassVar[str] = ""

    def run(self, module: Module, ctx: PassContext) -> None:
        """Changes `module` (an ir.Module) in place."""
        raise NotImplementedError(f"pass '{self.name}' has no run method")

    def acts_on(self, chip: Chip) -> bool:
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


def register_pass(cls: type[Pass]) -> type[Pass]:
    """Adds `cls` to the table of passes by its name; a name taken twice is an error."""
    if not cls.name:
        raise ValueError(f"{cls.__name__} has no name")
    if cls.name in _PASSES and _PASSES[cls.name].__qualname__ != cls.__qualname__:
        raise ValueError(f"pass '{cls.name}' is registered twice")
    _PASSES[cls.name] = cls
    parse_pass.cache_clear()
    return cls


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


@cache
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
