"""Python floats that a program is given: values of a run, where its ops can take them so.

Dynamo makes a float argument a tensor of rank 0 and reads its number (``item``). Torch's own pass then moves what it
can to ops of tensors, and makes the others constants, so that a call with another number is compiled anew. Converters
take numbers that a run computes: the floats stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import sympy
import torch
from torch._dynamo.exc import TensorifyScalarRestartAnalysis
from torch._dynamo.symbolic_convert import TensorifyState
from torch.fx import GraphModule, Node
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils import _pytree
from torch.utils._sympy.symbol import SymT, symbol_is_type

__all__ = ["floats_of_runs"]

_CONSTANTS = frozenset(("arange", "dist", "histc", "linalg_vector_norm", "multi_margin_loss",
                        "rrelu_with_noise_functional", "std", "std_mean", "var", "var_mean"))
"""Ops whose numbers decide what is computed, not of what."""


@contextmanager
def floats_of_runs(inputs: Sequence[object]) -> Iterator[None]:
    """In here AOTAutograd keeps the floats of a program with these inputs as they are. On GPUs torch's pass holds: a
    float that is returned, or saved for the backward graph, would wait for the device."""
    from torch._functorch._aot_autograd import graph_compile

    if any(isinstance(i, torch.Tensor) and i.device.type != "cpu" for i in inputs):
        yield
        return
    stage: Any = graph_compile
    before = stage.tensorify_python_scalars
    stage.tensorify_python_scalars = _specialize
    try:
        yield
    finally:
        stage.tensorify_python_scalars = before


def _specialize(module: GraphModule, env: ShapeEnv, _mode: object) -> None:
    """Has Dynamo trace again with those floats as constants that an op needs so, or that were asked for their value."""
    needed = {s for node in module.graph.nodes for s in _constants(node)}
    names = {str(s) for s in (*needed, *env.replacements) if symbol_is_type(s, SymT.FLOAT)}
    names = {n for n in names if not TensorifyState.should_specialize(n)}
    for name in names:
        TensorifyState.specialize(name)
    if names:
        raise TensorifyScalarRestartAnalysis


def _constants(node: Node) -> Iterator[sympy.Symbol]:
    """The symbols that are to be numbers for `node`: those of sizes, and of arguments that are no values."""
    tensors = [t for t in _pytree.tree_leaves(node.meta.get("val")) if isinstance(t, torch.Tensor)]
    numbers: list[Any] = [d for t in tensors for d in t.shape]
    if isinstance(node.target, torch._ops.OpOverload) and node.target._opname in _CONSTANTS:
        numbers += [n.meta.get("val") for n in node.all_input_nodes]
    for number in numbers:
        if isinstance(number, torch.SymFloat | torch.SymInt):
            yield from number.node.expr.free_symbols
