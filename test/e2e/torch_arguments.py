"""Arguments that models seldom have: one or two of a call's are exchanged for others that the op's schema allows.

Nothing here knows an op: what eager torch refuses is no call.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

import torch

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
TYPES = (*FLOATS, torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool)
WORDS: dict[str, tuple[str | None, ...]] = {
    "rounding_mode": ("trunc", "floor", None), "approximate": ("none", "tanh"), "side": ("left", "right"),
    "mode": ("constant", "reflect", "replicate", "circular"), "padding": ("same", "valid"),
    "reduce": ("sum", "prod", "mean", "amax", "amin", "add", "multiply")}
"""What arguments that are text may be, by their names."""

SETTLED = ("boundaries", "sorted_sequence", "sorter", "sorted", "offsets",
           "include_last_offset")
"""Arguments that torch takes on trust, and that which leaves the order of results open."""

Arguments = dict[str, Any]


def varied(schema: Any, given: Arguments, numbers: random.Random) -> Arguments:
    """`given` with one to three arguments exchanged; with all floats of another type, now and then."""
    out = dict(given)
    if numbers.random() < 0.2:
        kind = numbers.choice(FLOATS)
        out = {name: _cast(value, kind) for name, value in out.items()}
    if "backward" in schema.name:
        return out          # autograd gives what belongs together
    arguments = [a for a in schema.arguments if _kind(a) in _CHANGES and a.name not in SETTLED]
    for a in numbers.sample(arguments, min(len(arguments), numbers.choice((1, 1, 2, 3)))):
        if out[a.name] is not None and str(a.real_type).startswith("Optional") and numbers.random() < 0.2:
            out[a.name] = None
        else:
            out[a.name] = _CHANGES[_kind(a)](a.name, out, numbers)
    whole = isinstance(out.get("dtype"), torch.dtype) and not out["dtype"].is_floating_point
    weighed = any(word in schema.name for word in ("upsample", "sampler"))
    return {name: _finite(value) for name, value in out.items()} if whole or weighed else out


def _finite(value: Any) -> Any:
    """Without what has no whole number, and times a weight of 0 is not 0."""
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value.nan_to_num(1.0, 1.0, 1.0)
    return value


def _kind(argument: Any) -> str:
    """The argument's type as text, without whether it may be None."""
    text = str(argument.real_type)
    return text.removeprefix("Optional[").removesuffix("]") if text.startswith("Optional[") else text


def _cast(value: Any, kind: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value.to(kind)
    return [_cast(v, kind) for v in value] if isinstance(value, list) else value


def _rank(given: Mapping[str, Any]) -> int:
    """How many dims the first tensor has."""
    for value in given.values():
        if isinstance(value, list) and value and isinstance(value[0], torch.Tensor):
            value = value[0]
        if isinstance(value, torch.Tensor):
            return int(value.ndim)
    return 0


def _is_dim(name: str) -> bool:
    return name.startswith(("dim", "axis", "axes")) and "dimension" not in name or name == "dimension"


def _int(name: str, given: Arguments, numbers: random.Random) -> int:
    rank = max(_rank(given), 1)
    if _is_dim(name):
        return numbers.randrange(-rank, rank)
    if name.endswith(("reduction", "mode")):
        return numbers.randrange(3)
    own = given[name] if isinstance(given[name], int) else 1
    return numbers.choice((own + numbers.randint(-3, 3), -own, 0, 1, 2, -1, 100))


def _ints(name: str, given: Arguments, numbers: random.Random) -> list[int]:
    rank = _rank(given)
    if _is_dim(name):
        chosen = numbers.sample(range(rank), numbers.randint(0, rank))
        return [d - rank if numbers.random() < 0.5 else d for d in chosen]
    own = given[name] if isinstance(given[name], list | tuple) else [1] * max(rank, 1)
    if numbers.random() < 0.2:
        return list(own[:-1])
    return [d + numbers.choice((0, 0, 1, -1, 2)) if isinstance(d, int) else d for d in own]


def _number(name: str, given: Arguments, numbers: random.Random) -> Any:
    if name == "correction":
        return numbers.choice((0, 1, 2, 0.5))
    return numbers.choice((0, 1, 2, -1, 3, True, 0.0, 1.0, 0.5, -1.5, 2.0, 2.5, 1e-3, float("inf")))


def _float(name: str, given: Arguments, numbers: random.Random) -> float:
    return float(numbers.choice((1.0, 0.5, 2.0, 1.25, *(() if name.startswith("scale") else (0.0, -1.5, 1e-3)))))


def _bool(name: str, given: Arguments, numbers: random.Random) -> bool:
    return not given[name]


def _word(name: str, given: Arguments, numbers: random.Random) -> Any:
    return numbers.choice(WORDS.get(name, (given[name],)))


def _dtype(name: str, given: Arguments, numbers: random.Random) -> Any:
    return numbers.choice((*FLOATS, torch.int64, torch.bool, None))


def _tensor(name: str, given: Arguments, numbers: random.Random) -> Any:
    t = given[name]
    return t if t is None else _changed(t, numbers)


def _tensors(name: str, given: Arguments, numbers: random.Random) -> Any:
    own = list(given[name] or [])
    if own:
        n = numbers.randrange(len(own))
        own[n] = own[n] if own[n] is None else _changed(own[n], numbers)
    return own


def _changed(t: Any, numbers: random.Random) -> Any:
    """The tensor in another type, shape or layout, or with other values."""
    d = numbers.randrange(t.ndim) if t.ndim else 0
    match numbers.randrange(9):
        case 0 | 1:
            kind = numbers.choice(TYPES)
            return t.clamp(0, 5).to(kind) if t.dtype != torch.bool and not kind.is_floating_point else t.to(kind)
        case 2 if t.ndim:
            return t.narrow(d, 0, 0)
        case 3 if t.ndim and t.shape[d]:
            return t.narrow(d, 0, 1)
        case 4 if t.numel():
            return t.reshape(-1)[0]
        case 5:
            return t.unsqueeze(0)
        case 6 if t.ndim > 1:
            return t.transpose(0, -1).contiguous().transpose(0, -1)
        case 7 if t.ndim and t.shape[0]:
            return t.select(0, 0)
        case _:
            return _special(t, numbers)


def _special(t: Any, numbers: random.Random) -> Any:
    """Some elements are as few are: not a number, infinite, -0.0, below 0, or like another."""
    out = t.clone().reshape(-1)
    for _ in range(min(3, out.numel())):
        n = numbers.randrange(out.numel())
        if t.is_floating_point():
            out[n] = numbers.choice((float("nan"), float("inf"), -float("inf"), -0.0, 0.0, 0.5, float(out[0])))
        elif t.dtype == torch.bool:
            out[n] = not out[n]
        else:
            out[n] = out[0] if numbers.random() < 0.5 or t.dtype == torch.uint8 else out[n] - numbers.randint(1, 3)
    return out.reshape(t.shape)


_CHANGES: dict[str, Callable[[str, Arguments, random.Random], Any]] = {
    "Tensor": _tensor, "List[Tensor]": _tensors, "List[Optional[Tensor]]": _tensors, "int": _int, "SymInt": _int,
    "List[int]": _ints, "List[SymInt]": _ints, "bool": _bool, "float": _float, "number": _number, "Scalar": _number,
    "str": _word, "ScalarType": _dtype}


def text(value: Any) -> str:
    """An argument as a call shows it: a tensor by its type and shape, and what it holds if that is little."""
    if isinstance(value, torch.Tensor):
        short = f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
        return short + (str(value.tolist()) if value.numel() <= 12 else "")
    return f"[{', '.join(map(text, value))}]" if isinstance(value, list | tuple) else repr(value)
