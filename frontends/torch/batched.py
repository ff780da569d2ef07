"""What ``torch.vmap`` makes of ops whose own rules, of torch's C++ code, read sizes as numbers.

Such a rule would compile a model again for each size: those of ``torch.cat`` and of what splits a tensor again in a
gradient are in each second derivative of ``torch.func``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch._C import DispatchKey, DispatchKeySet, _functorch
from torch.utils import _pytree

__all__ = ["declare_batching_rules"]

_BATCHED = DispatchKey.FuncTorchBatched
_DECOMPOSED = ("gelu_backward", "linalg_cross", "native_layer_norm", "native_layer_norm_backward")
_OF_VIEWS = {"slice_backward": ("dim",), "select_backward": ("dim",), "unfold_backward": ("dim",),
             "diagonal_backward": ("dim1", "dim2")}
_ALONG_A_DIM = ("gather.default", "scatter.src", "scatter.value", "scatter.reduce", "scatter.value_reduce",
                "scatter_add.default", "scatter_reduce.two")


@cache
def declare_batching_rules() -> None:
    """From now on these ops are traced at any size inside of ``vmap``."""
    from torch._decomp import decomposition_table

    aten = torch.ops.aten
    rules: dict[Any, Callable[..., Any]] = {aten.cat.default: _cat, aten.unbind.int: _unbind,
                                            aten.index_select.default: _index_select,
                                            aten.index_add.default: _index_add}
    for name, dims in _OF_VIEWS.items():
        op = getattr(aten, name).default
        rules[op] = _of_a_view(op, dims)
    for name in _DECOMPOSED:
        op = getattr(aten, name).default
        rules[op] = decomposition_table[op]
    for name in _ALONG_A_DIM:
        packet, overload = name.split(".")
        op = getattr(getattr(aten, packet), overload)
        rules[op] = _along_a_dim(op)
    for op, rule in rules.items():
        if _BATCHED not in op.py_kernels:
            op.py_impl(_BATCHED)(_of_batches(op, rule))


def _of_batches(op: Callable[..., object], rule: Callable[..., object]) -> Callable[..., object]:
    """`rule` where a tensor belongs to the innermost ``vmap``, and `op` where all are those of outer ones."""
    def dispatched(*args: object, **named: object) -> object:
        if any(isinstance(t, torch.Tensor) and _is_own(t) for t in _pytree.tree_leaves((args, named))):
            return rule(*args, **named)
        with torch._C._ExcludeDispatchKeyGuard(DispatchKeySet(_BATCHED)):
            return op(*args, **named)

    return dispatched


def _is_own(x: torch.Tensor) -> bool:
    return _functorch.is_batchedtensor(x) and _functorch.maybe_get_level(x) == _level()


def _in_front(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """What is behind the `tensors` of the innermost ``vmap``, each with the batch as its first dim."""
    moved = []
    for t in tensors:
        own = _is_own(t)
        moved.append((_functorch.get_unwrapped(t).movedim(_functorch.maybe_get_bdim(t), 0) if own else t, own))
    size = next(t.shape[0] for t, own in moved if own)
    return [t if own else t.expand(size, *t.shape) for t, own in moved]


def _of_whole(function: Callable[..., Any], tensors: Sequence[torch.Tensor]) -> Any:
    """`function` of the tensors with their batches in front, whose result is one of the innermost ``vmap`` again."""
    level = _level()
    with torch._C._ExcludeDispatchKeyGuard(DispatchKeySet(_BATCHED)):
        results = function(*_in_front(tensors))
        if isinstance(results, torch.Tensor):
            return _functorch._add_batch_dim(results, 0, level)
        return [_functorch._add_batch_dim(r, 0, level) for r in results]


def _level() -> int:
    level = _functorch.maybe_current_level()
    assert level is not None, "the rules are called inside of a vmap"
    return level


def _behind(dim: int, rank: int) -> int:
    """Which dim it is where the batch is in front."""
    return dim % max(rank, 1) + 1


def _cat(tensors: Sequence[torch.Tensor], dim: int = 0) -> Any:
    rank = max(t.dim() for t in tensors)
    some = [t for t in tensors if t.dim() == rank]       # torch lets tensors of shape [0] be put to any others
    return _of_whole(lambda *whole: torch.cat(whole, _behind(dim, rank)), some)


def _unbind(x: torch.Tensor, dim: int = 0) -> Any:
    return _of_whole(lambda whole: torch.unbind(whole, _behind(dim, x.dim())), [x])


def _index_select(x: torch.Tensor, dim: int, index: torch.Tensor) -> Any:
    if not x.dim():
        return x.unsqueeze(0).index_select(0, index).squeeze(0)
    wide = [1] * x.dim()
    wide[dim] = -1
    return x.gather(dim, index.view(wide).expand(*x.shape[:dim % x.dim()], -1, *x.shape[dim % x.dim() + 1:]))


def _index_add(x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor, *, alpha: float = 1) -> Any:
    if not x.dim():
        return x.unsqueeze(0).index_add(0, index.reshape(-1), source.reshape(-1), alpha=alpha).squeeze(0)
    wide = [1] * x.dim()
    wide[dim] = -1
    return x.scatter_add(dim, index.view(wide).expand(source.shape), source if alpha == 1 else source * alpha)


def _of_a_view(op: Any, dims: tuple[str, ...]) -> Callable[..., Any]:
    """The rule of the gradient of a view: `op` of a gradient and the sizes of what the view is of, some of whose
    arguments are dims of that."""
    names = [a.name for a in op._schema.arguments]

    def rule(grad: torch.Tensor, sizes: Sequence[Any], *rest: Any) -> Any:
        given = dict(zip(names[2:], rest, strict=False))
        defaults = {a.name: a.default_value for a in op._schema.arguments if a.name in dims}
        given |= {d: _behind(given.get(d, defaults[d]), len(sizes)) for d in dims}
        return _of_whole(lambda whole: op(whole, [whole.shape[0], *sizes], **given), [grad])

    return rule


def _along_a_dim(op: Any) -> Callable[..., Any]:
    """The rule of an op of a tensor, a dim, indices and sometimes values, whose dims are all alike."""
    def rule(x: torch.Tensor, dim: int, index: torch.Tensor, *rest: Any, **named: Any) -> Any:
        given = [x, index, *(v for v in rest if isinstance(v, torch.Tensor))]
        given = [t.unsqueeze(0) if not t.dim() else t for t in given]

        def whole(own: torch.Tensor, places: torch.Tensor, *values: torch.Tensor) -> torch.Tensor:
            others = [v for v in rest if not isinstance(v, torch.Tensor)]
            return op(own, _behind(dim, x.dim()), places, *values, *others, **named)

        out = _of_whole(whole, given)
        return out if x.dim() else out.squeeze(0)

    return rule
