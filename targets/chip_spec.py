"""How a chip is named: ``znver4``, ``native``, ``znver4,cores=8,l3_bytes=16M``; several have commas between them.

An item with ``=`` sets an attribute of the chip before it: a field of :class:`xcc.targets.base.Chip`. Sizes may end in
K, M or G (of 1024). Values of a list have ``/`` between them, rates a type each: ``matrix=vnni/bf16``,
``features=+avx512f/-prefer-256-bit``, ``flops=f32:113e9``.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, TypeVar

from xcc.diagnostics import UserError
from xcc.targets.base import Chip

NATIVE = "native"
"""The name of this machine's chip."""

MAY_BE_0 = ("l3_bytes",)
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
BOOLS = {"true": True, "1": True, "false": False, "0": False}

N = TypeVar("N", int, float)


def split_specs(text: str) -> list[str]:
    """``a,cores=8,b`` as ["a,cores=8", "b"]; [""] of no text."""
    specs: list[str] = []
    for item in text.split(","):
        if "=" not in item:
            specs.append(item)
        elif specs:
            specs[-1] += f",{item}"
        else:
            raise UserError(f"chip '{text}': '{item}' is an attribute, and no chip is before it: write "
                            f"{NATIVE},{item} or NAME,{item}")
    return specs


def with_attributes(chip: Chip, items: list[str], where: str) -> Chip:
    """`chip` with ``attribute=value`` of each item; `where` is the text that they are from."""
    fields = {f.name: str(f.type) for f in dataclasses.fields(chip)}
    values: dict[str, Any] = {}
    for item in items:
        key, _, text = item.partition("=")
        if key not in fields:
            raise UserError(f"chip '{where}': '{item}': a chip has no attribute '{key}'; attributes are "
                            f"{', '.join(sorted(fields))}")
        try:
            values[key] = _value(key, text, fields[key])
        except (ValueError, OverflowError):
            raise UserError(f"chip '{where}': '{item}': {_wanted(key, fields[key])}") from None
    return dataclasses.replace(chip, **values)


def spec_of(chip: Chip, table: Mapping[str, Chip]) -> str:
    """The text that names `chip` on every machine: an entry of `table`, and what is different."""
    base = table.get(chip.name) or min(table.values(), key=lambda c: len(_different(chip, c)))
    return ",".join([base.name, *(f"{key}={_text(getattr(chip, key))}" for key in _different(chip, base))])


def chip_facts(chip: Chip) -> dict[str, Any]:
    """`chip` as JSON: its attributes by name."""
    return dataclasses.asdict(chip) | {"flops": dict(chip.flops), "matrix": list(chip.matrix)}


def chip_from_facts(facts: Any, target: str) -> Chip:
    """The chip of :func:`chip_facts`, as the manifest of an artifact for `target` has it."""
    from xcc.targets.base import get_target

    kind = type(next(iter(get_target(target).chips().values())))
    try:
        return kind(**facts | {"flops": tuple(facts["flops"].items()), "matrix": tuple(facts["matrix"])})
    except (TypeError, KeyError, AttributeError):
        raise UserError("the model's manifest.json does not say the attributes of its chip: compile it again") from None


def _different(chip: Chip, base: Chip) -> list[str]:
    return [f.name for f in dataclasses.fields(chip) if getattr(chip, f.name) != getattr(base, f.name)]


def _value(key: str, text: str, kind: str) -> bool | float | str | tuple[str, ...] | tuple[tuple[str, float], ...]:
    """`text` as a value of a field of type `kind`; ValueError when it is none."""
    if kind == "bool":
        if text not in BOOLS:
            raise ValueError
        return BOOLS[text]
    if kind == "int":
        unit = UNITS.get(text[-1:].upper(), 1)
        return _positive(int(text[:-1] if unit > 1 else text) * unit, key)
    if kind == "float":
        return _positive(float(text), key)
    if kind == "str":
        return text.replace("/", ",") if key == "features" else _not_empty(text)
    parts = text.split("/") if text else []
    if kind == "tuple[str, ...]":
        return tuple(map(_not_empty, parts))
    rates = [part.partition(":") for part in parts]
    return tuple((_not_empty(name), _positive(float(rate), key)) for name, _, rate in rates)


def _positive(number: N, key: str) -> N:
    power = key not in ("vector_bytes", "warp") or number & (number - 1) == 0      # type: ignore[operator]
    if not math.isfinite(number) or number < (0 if key in MAY_BE_0 else 1) or not power:
        raise ValueError
    return number


def _not_empty(text: str) -> str:
    if not text:
        raise ValueError
    return text


def _wanted(key: str, kind: str) -> str:
    """What a field of type `kind` takes."""
    if kind == "int":
        least = "0 or more" if key in MAY_BE_0 else "a power of two" if key in ("vector_bytes", "warp") else "1 or more"
        return f"give a whole number, {least} (K, M, G: times 1024, 1024^2, 1024^3)"
    return {"bool": "give true or false", "float": "give a number, 1 or more", "str": "give a name",
            "tuple[str, ...]": "give names with / between them"}.get(kind, "give rates as TYPE:NUMBER, / between them")


def _text(value: int) -> str:
    """What :func:`_value` reads back."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "/".join(v if isinstance(v, str) else f"{v[0]}:{v[1]!r}" for v in value)
    return value.replace(",", "/") if isinstance(value, str) else repr(value)
