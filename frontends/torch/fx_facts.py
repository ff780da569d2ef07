"""What a node of an FX graph of ATen ops says of itself: checks, sizes, random numbers, its line in the user's code."""

from __future__ import annotations

import re
from typing import Any

import torch

from xcc.frontends.torch.layout import order_of
from xcc.symbolic import Dim

__all__ = ["CHECKS", "ORDER", "body_of", "counts", "draws", "function_name", "hint_of", "is_arithmetic", "is_check",
           "is_ragged", "memory_order", "only_checked", "operand", "order_of_node", "plain", "source_of"]

CHECKS = ("_assert_scalar", "_assert_async", "_assert_tensor_metadata", "_functional_assert_async",
          "_functional_assert_scalar", "sym_constrain_range", "sym_constrain_range_for_size", "_make_dep_token",
          "_functional_sym_constrain_range", "_functional_sym_constrain_range_for_size")
"""Checks of what tracing has assumed. Sizes are compared by xcc itself."""

OFF: dict[str, tuple[Any, ...]] = {"dropout_p": (0,), "dropout": (0,), "train": (False,), "training": (False,)}
"""Arguments by which an op that may draw random numbers draws none."""


def only_checked(graph: torch.fx.Graph) -> set[torch.fx.Node]:
    """Checks, the numbers of sizes that nothing else reads, and what is computed for checks alone."""
    found: set[torch.fx.Node] = set()
    for node in reversed(graph.nodes):
        if node.op == "call_function" and (is_check(node) or found.issuperset(node.users)
                                           and (is_arithmetic(node) or node.users and _only_gives(node))):
            found.add(node)
    return found


def _only_gives(node: torch.fx.Node) -> bool:
    """Whether nothing but the op's results tells that it has run."""
    return isinstance(node.target, torch._ops.OpOverload) and not node.target._schema.is_mutable


def is_check(node: torch.fx.Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and str(node.target).split(".")[1] in CHECKS


def is_arithmetic(node: torch.fx.Node) -> bool:
    """Whether it is Python's own arithmetic, or asks for a size."""
    if isinstance(node.target, torch._ops.OpOverload):
        return str(node.target).startswith("aten.sym_")
    return isinstance(node.meta.get("val"), torch.SymInt | torch.SymBool | torch.SymFloat)


def draws(node: torch.fx.Node) -> bool:
    """Whether `node` needs random numbers: attention and recurrent layers do with dropout only."""
    if not isinstance(node.target, torch._ops.OpOverload) or torch.Tag.nondeterministic_seeded not in node.target.tags:
        return False
    values = {a.name: node.args[n] if n < len(node.args) else node.kwargs.get(a.name, a.default_value)
              for n, a in enumerate(node.target._schema.arguments)}
    return not any(values.get(name) in off for name, off in OFF.items())


def counts(target: Any) -> bool:
    """Whether sizes of the op's results may depend on what its operands hold; any other library's may."""
    return getattr(target, "namespace", "") != "aten" or torch.Tag.dynamic_output_shape in target.tags


def operand(node: torch.fx.Node, n: int = 0) -> torch.fx.Node:
    """The node that argument `n` of `node` is."""
    given = node.args[n]
    assert isinstance(given, torch.fx.Node)
    return given


def body_of(node: torch.fx.Node) -> torch.fx.GraphModule | None:
    """The graph that a node names, which a higher-order op takes; None for other nodes."""
    module = node.graph.owning_module
    value = attribute_of(module, node) if node.op == "get_attr" and module is not None else None
    return value if isinstance(value, torch.fx.GraphModule) else None


def attribute_of(module: torch.nn.Module, node: torch.fx.Node) -> Any:
    """What a get_attr node of the graph of `module` reads."""
    value = module
    for part in str(node.target).split("."):
        value = getattr(value, part)
    return value


ORDER = "xcc_memory_order"
"""Key of a node's meta: how the dims of its tensor lie in memory, where that is for xcc to say."""


def order_of_node(node: torch.fx.Node) -> tuple[int, ...]:
    """How the dims of a node's tensor lie in memory; see `memory_order`."""
    order: tuple[int, ...] = node.meta.get(ORDER) or memory_order(node.meta.get("val"))
    return order


def memory_order(value: Any) -> tuple[int, ...]:
    """How the dims of a traced tensor lie in memory; () for row-major ones and those that are not dense."""
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
        return ()
    sizes, strides = ([hint_of(n) for n in each] for each in (value.shape, value.stride()))
    if None in sizes or None in strides:
        return ()
    order = order_of(sizes, strides)        # type: ignore[arg-type]
    return order if order is not None and order != tuple(range(len(order))) else ()


def hint_of(n: int | torch.SymInt) -> int | None:
    """A size in the call that is traced; None for one that only a run can tell."""
    return n.node.hint if isinstance(n, torch.SymInt) else n


def is_ragged(value: object) -> bool:
    """Whether it is the name that torch gives the lengths of a nested tensor, where others have a size."""
    return isinstance(value, torch.SymInt) and bool(value.node.is_nested_int())


def plain(d: Dim) -> int | str:
    return d if isinstance(d, int) else str(d)


def function_name(target: Any) -> str:
    """``scalar.pow`` for a Python function of numbers, ``higher_order.cond`` for an op that takes graphs."""
    if isinstance(target, torch._ops.HigherOrderOperator):
        return f"higher_order.{target}"
    return f"scalar.{target.__name__.strip('_').removeprefix('sym_')}"


_FRAME = re.compile(r'File "(.+)", line (\d+), in (\S+)\n\s*(.*)')


def source_of(node: torch.fx.Node) -> str:
    """The user's own line behind `node`: the innermost frame that is not in torch; "" where none is known."""
    frames = _FRAME.findall(str(node.meta.get("stack_trace") or ""))
    own = [f for f in frames if "/site-packages/torch/" not in f[0]] or frames
    if not own:
        return ""
    file, line, function, code = own[-1]
    return f"{file}:{line}, in {function}: {code.strip()}"
