"""Control flow: the ops of ``torch.cond``, ``while_loop``, ``scan`` and ``map``. Their bodies become regions."""

from __future__ import annotations

from collections.abc import Sequence

from xcc import symbolic
from xcc._mlir import Value
from xcc.dialects import xt
from xcc.dialects.xt.types import TensorType
from xcc.frontends.torch.context import Context
from xcc.frontends.torch.registry import aten
from xcc.symbolic import Dim, Expr

_NAMESPACE = "higher_order"


@aten("cond", namespace=_NAMESPACE)
def cond(cx: Context) -> list[Value]:
    """cond(pred, true_fn, false_fn, operands). A size that the branches give differently is a new one."""
    operands = cx.args.get("arg3", ())
    new = iter(sorted(cx.node.new, key=lambda place: place[1:]))

    def fresh() -> Dim:
        found = next(new, None)
        return symbolic.sym(found[0]) if found else cx.fail("torch does not say that its branches give other sizes")

    return list(xt.if_(_flag(cx.value_of(cx["arg0"])), lambda: _body(cx, "arg1", operands),
                       lambda: _body(cx, "arg2", operands), fresh=fresh))


@aten("while_loop", namespace=_NAMESPACE)
def while_loop(cx: Context) -> list[Value]:
    """while_loop(cond_fn, body_fn, carried, additional)."""
    carried = _tensors(cx, "arg2")

    def goes_on(*now: Value) -> Value:
        return _flag(_turn(cx, "arg0", now, cx["arg3"])[0])

    def step(*now: Value) -> list[Value]:
        return _like(cx, _turn(cx, "arg1", now, cx["arg3"]), carried)

    return list(xt.while_(carried, goes_on, step))


@aten("scan", namespace=_NAMESPACE)
def scan(cx: Context) -> list[Value]:
    """scan(combine_fn, init, xs, additional): the last carried values, and what the turns give, stacked."""
    carried = _tensors(cx, "arg1")

    def step(now: Sequence[Value], slices: Sequence[Value]) -> tuple[list[Value], list[Value]]:
        made = _turn(cx, "arg0", now, slices, cx["arg3"])
        return _like(cx, made[:len(now)], carried), made[len(now):]

    return list(xt.scan(carried, _tensors(cx, "arg2"), step))


@aten("map_impl", namespace=_NAMESPACE)
def map_(cx: Context) -> list[Value]:
    """map_impl(f, xs, additional): what `f` gives for each slice, stacked."""
    def step(_: Sequence[Value], slices: Sequence[Value]) -> tuple[list[Value], list[Value]]:
        return [], _turn(cx, "arg0", slices, cx["arg2"])

    return list(xt.scan([], _tensors(cx, "arg1"), step))


def _flag(x: Value) -> Value:
    """A condition, which may be a tensor of one element, as a scalar."""
    return xt.reshape(x, shape=()) if xt.shape_of(x) else x


def _tensors(cx: Context, name: str) -> list[Value]:
    """What a loop carries or goes over."""
    if any(isinstance(v, bool | int | float | Expr) for v in cx[name]):
        cx.fail("it carries a Python number: carry a tensor in its place")
    return cx.tensors(name)


def _body(cx: Context, name: str, operands: Sequence[Value]) -> list[Value]:
    """Builds the subgraph that is the argument `name`; its results."""
    return cx.graph.run_body(cx[name].name, operands)


def _turn(cx: Context, name: str, *operands: Sequence[Value]) -> list[Value]:
    """The same for one that runs many times, and would draw the same random numbers each time."""
    before = cx.graph.draws
    results = _body(cx, name, [v for each in operands for v in each])
    if cx.graph.draws != before:
        cx.fail("its body draws random numbers, which would be the same in each turn: draw them before the loop")
    return results


def _like(cx: Context, values: list[Value], carried: Sequence[Value]) -> list[Value]:
    """What a turn gives, of the types that it was given."""
    for made, had in zip(map(TensorType.of, values), map(TensorType.of, carried), strict=True):
        if not xt.agree(made, had):
            cx.fail(f"a turn gives {made} where it was given {had}")
    return values
