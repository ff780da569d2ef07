"""Gradients of the samples of torch's own operator tests, traced with their backward (see :mod:`torch_samples`)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch_samples
from torch._dispatch.python import enable_python_dispatcher
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree
from torch_samples import Case, Sample, database

from xcc.frontends.torch.keep import aot_decompositions
from xcc.frontends.torch.registry import lookup

Function = Callable[..., list[Any]]


def cases(op: str, dtype: str, drawn: Callable[[Sample], bool]) -> Iterator[Case]:
    """The traced gradients of those of an op's samples that are `drawn`."""
    for number, given in enumerate(torch_samples.sample_inputs(op, dtype, requires_grad=True)):
        if drawn(Sample(op, dtype, number)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield _case(Sample(op, dtype, number), given)


def _case(sample: Sample, given: Any) -> Case:
    leaves, spec = _pytree.tree_flatten((given.input, given.args, given.kwargs))
    places = [n for n, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    tensors = [leaves[n] for n in places]
    if any(map(torch_samples._strange, tensors)) or not any(t.requires_grad for t in tensors):
        return Case(sample, "no gradient, sparse, nested, complex or of a type that xcc has not")
    op = database()[sample.op].op

    def function(*values: Any) -> list[Any]:
        own = list(leaves)
        for n, value in zip(places, values, strict=True):
            own[n] = value
        first, args, kwargs = _pytree.tree_unflatten(own, spec)
        return [t for t in _pytree.tree_leaves(op(first, *args, **kwargs)) if isinstance(t, torch.Tensor)]

    gradient = _Gradient(function, [t.requires_grad for t in tensors])
    case = torch_samples._traced(sample, gradient, [t.detach() for t in tensors])
    return case if case.left_out else _counted(case)


class _Gradient:
    """The gradients of the `wanted` operands of a function: of a sum of its results by weights that differ."""

    def __init__(self, function: Function, wanted: list[bool]) -> None:
        self._function, self._wanted = function, wanted
        self._graph: Any = None

    def __call__(self, *values: Any) -> list[Any]:
        if torch._C._functorch.peek_interpreter_stack() is not None:    # functionalize cannot see autograd inside
            return list(self._graph(*values))
        out = self._of(*values)
        if self._graph is None:
            with enable_python_dispatcher():    # as AOTAutograd: a batch norm says that it writes its statistics
                self._graph = make_fx(self._of, aot_decompositions(), tracing_mode="fake")(*values)
        return out

    def _of(self, *values: Any) -> list[Any]:
        with torch.enable_grad():
            own = [v.detach().requires_grad_(want) for v, want in zip(values, self._wanted, strict=True)]
            outs = [o for o in self._function(*own) if o.requires_grad]
            weights = [torch.cos(torch.arange(o.numel(), dtype=o.dtype)).reshape(o.shape) for o in outs]
            found = torch.autograd.grad(outs, [v for v in own if v.requires_grad], weights, allow_unused=True)
        return [g.detach() for g in found if g is not None]


def _counted(case: Case) -> Case:
    """What has a converter counts, and gradients must have one, though few of these ops are core ATen."""
    case.beyond = tuple(op for op in case.beyond if lookup(op) is None and not op.split(".")[1].endswith("_backward"))
    return case
