"""Ops on lists of tensors (``_foreach_add.Scalar``), as optimizers use them: one op a tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

__all__ = ["foreach_decompositions"]

_OWN: dict[str, Callable[..., Any]] = {
    "maximum": lambda x, y: (torch.maximum if isinstance(y, torch.Tensor) else torch.clamp_min)(x, y),
    "minimum": lambda x, y: (torch.minimum if isinstance(y, torch.Tensor) else torch.clamp_max)(x, y),
    "norm": lambda x, order=2, dtype=None: torch.ops.aten.linalg_vector_norm(x, order, dtype=dtype),
    "addcmul": lambda x, a, b, factor=1: torch.ops.aten.addcmul(x, a, b, value=factor),
    "addcdiv": lambda x, a, b, factor=1: torch.ops.aten.addcdiv(x, a, b, value=factor),
    "zero": torch.zeros_like,
}
"""Those for which the op of that name takes its arguments in another way."""

_BY_VALUE = ("addcmul.Tensor", "addcdiv.Tensor")
"""Overloads with the factors of all tensors as elements of one tensor."""


def foreach_decompositions() -> dict[Any, Callable[..., list[Any]]]:
    """Every such op that gives new tensors, for torch's tables of decompositions."""
    out = {}
    for full in torch._C._dispatch_get_all_op_names():
        if not full.startswith("aten::_foreach_"):
            continue
        name, _, overload = full.removeprefix("aten::_foreach_").partition(".")
        plain = _OWN.get(name) or getattr(torch.ops.aten, name, None)
        if name.endswith("_") or plain is None or overload.endswith("out") or f"{name}.{overload}" in _BY_VALUE:
            continue
        op = getattr(getattr(torch.ops.aten, f"_foreach_{name}"), overload or "default")
        out[op] = _each(op, plain)
    return out


def _each(op: Any, plain: Callable[..., Any]) -> Callable[..., list[Any]]:
    """`plain` for each entry of the arguments that are lists; others are the same for all."""
    own = [(a.name, str(a.type).startswith("List["), a.kwarg_only) for a in op._schema.arguments]

    def run(*args: Any, **kwargs: Any) -> list[Any]:
        given = dict(zip([name for name, *_ in own], args, strict=False)) | kwargs
        used = [entry for entry in own if entry[0] in given]
        count = next(len(given[name]) for name, many, _ in used if many)
        rows = zip(*(given[name] if many else [given[name]] * count for name, many, _ in used), strict=True)
        return [plain(*(v for v, (*_, named) in zip(row, used, strict=True) if not named),
                      **{name: v for v, (name, _, named) in zip(row, used, strict=True) if named}) for row in rows]

    return run
