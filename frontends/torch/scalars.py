"""Numbers that a program reads of tensors, and Python's own arithmetic of those and of sizes: xt values of rank 0."""

from __future__ import annotations

from collections.abc import Callable

from xcc import symbolic
from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.shared.counted import count_up_to
from xcc.frontends.shared.helpers import convert, element
from xcc.frontends.torch.arithmetic import floor_divide
from xcc.frontends.torch.context import Context
from xcc.frontends.torch.elementwise import truth
from xcc.frontends.torch.graph import HIGHEST
from xcc.frontends.torch.promotion import promote
from xcc.frontends.torch.registry import aten
from xcc.symbolic import Dim

_ARITHMETIC = {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "pow": "pow", "mod": "mod",
               "max": "maximum", "min": "minimum", "and": "and_", "or": "or_", "xor": "xor"}
_COMPARE = ("eq", "ge", "gt", "le", "lt", "ne")
_FUNCTIONS = {"sqrt": "sqrt", "cos": "cos", "cosh": "cosh", "sin": "sin", "sinh": "sinh", "tan": "tan", "tanh": "tanh",
              "asin": "asin", "acos": "acos", "atan": "atan", "log2": "log2", "exp": "exp", "log": "log"}
_OF_ANY_TYPE = {"neg": "neg", "abs": "abs"}
_ROUNDED = {"floor": "floor", "ceil": "ceil", "trunc": "trunc", "int": "trunc", "round": "round"}


def _number(cx: Context, name: str) -> Value:
    """An argument as an f64, i64 or i1 of rank 0."""
    value = cx[name]
    return cx.value_of(value, "f64" if isinstance(value, float) else None)


def _pair(cx: Context) -> list[Value]:
    values = [_number(cx, "arg0"), _number(cx, "arg1")]
    kind = promote(*map(element, values))
    return [convert(v, kind) for v in values]


def _arithmetic(name: str) -> Callable[[Context], Value]:
    """In the type of the result: ``2 ** n`` is an integer, ``n / 2`` a float."""
    builder = getattr(xt, _ARITHMETIC[name])
    return lambda cx: builder(*(convert(_number(cx, n), cx.out().dtype) for n in ("arg0", "arg1")))


def _comparison(direction: str) -> Callable[[Context], Value]:
    return lambda cx: xt.compare(*_pair(cx), direction=direction)


def _of_any_type(builder: str) -> Callable[[Context], Value]:
    return lambda cx: getattr(xt, builder)(convert(_number(cx, "arg0"), cx.out().dtype))


def _function(builder: str) -> Callable[[Context], Value]:
    return lambda cx: getattr(xt, builder)(convert(_number(cx, "arg0"), "f64"))


def _rounded(builder: str) -> Callable[[Context], Value]:
    def whole(cx: Context) -> Value:
        if cx.args.get("arg1") is not None:
            cx.fail("Python rounds a number to digits as its decimal text has it, which no arithmetic of floats does")
        return convert(getattr(xt, builder)(convert(_number(cx, "arg0"), "f64")), cx.out().dtype)

    return whole


for _name in _ARITHMETIC:
    aten(_name, namespace="scalar")(_arithmetic(_name))
for _name in _COMPARE:
    aten(_name, namespace="scalar")(_comparison(_name))
for _name, _builder in _FUNCTIONS.items():
    aten(_name, namespace="scalar")(_function(_builder))
for _name, _builder in _OF_ANY_TYPE.items():
    aten(_name, namespace="scalar")(_of_any_type(_builder))
for _name, _builder in _ROUNDED.items():
    aten(_name, namespace="scalar")(_rounded(_builder))


@aten("not", namespace="scalar")
def logical_not(cx: Context) -> Value:
    return xt.not_(truth(_number(cx, "arg0")))


@aten("ite", namespace="scalar")
def choice(cx: Context) -> Value:
    """arg1 where arg0, else arg2."""
    kind = cx.out().dtype
    return xt.select(truth(_number(cx, "arg0")), *(convert(_number(cx, name), kind) for name in ("arg1", "arg2")))


@aten("float", namespace="scalar")
def to_float(cx: Context) -> Value:
    return convert(_number(cx, "arg0"), "f64")


@aten("floordiv", namespace="scalar")
def quotient(cx: Context) -> Value:
    return floor_divide(*_pair(cx))


@aten("_local_scalar_dense")
def item(cx: Context) -> Value | Dim:
    """The one element of a tensor as a number; a whole one is a size, which is counted up to its limit."""
    x = xt.reshape(cx.tensor("self"), shape=())
    if not cx.node.new:
        return convert(x, cx.out().dtype)
    return counted_size(cx, convert(x, "i64"), "a whole number that is read from a tensor, is a size or an index")


def counted_size(cx: Context, value: Value, what: str) -> Dim:
    """The size that the node tells, the scalar `value` (i64[]), counted up to its limit; `what` names it to users."""
    (name, _, _), = cx.node.new
    low, high = cx.graph.bounds.get(name, (0, HIGHEST))
    if high == HIGHEST:
        cx.fail(f"'{name}', {what}: say how large it may be "
                f"by dims={{'{name}': (0, 100)}} (--dim {name}=0..100), or by torch._check(n <= 100) in the model")
    count_up_to(value, name, low, high, cx.where)
    return symbolic.sym(name)
