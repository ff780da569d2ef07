"""Control flow with regions, calls of kernels, yield, and what ends a run: ``xtv`` ops.

Regions may use values from outside.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from xcc._mlir import Block, Operation, Region, Type, Value, ir
from xcc.diagnostics import Misfit, UserError
from xcc.dialects.xt.broadcasting import merge_dim
from xcc.dialects.xt.fields import dims, integers, operand, region, symbol_ref, text, variadic
from xcc.dialects.xt.op import BUILDERS, ListOp, agree, attrs_of, create, grouped_operands, typed
from xcc.dialects.xt.reading import block_results
from xcc.dialects.xt.types import TensorType
from xcc.symbolic import Dim


class _Control:
    """What control ops share. One without a rule of its own takes and gives values of any types."""

    access = "control"
    variadic_results = True
    result_names = ("outputs",)  # type: tuple[str, ...]

    @classmethod
    def problem(cls, op: Operation) -> str | None:
        return None


class Yield(_Control, ListOp, name="yield"):
    """Ends a region and gives its results."""

    values = variadic()
    result_names = ()


def _differ(what: str, have: Sequence[Value | TensorType], want: Sequence[Value | TensorType]) -> str | None:
    """A message when two lists of types (or values) do not agree."""
    a, b = ([t if isinstance(t, TensorType) else TensorType.of(t) for t in ts] for ts in (have, want))
    if len(a) == len(b) and all(map(agree, a, b)):
        return None
    return f"{what} {', '.join(map(str, a)) or 'nothing'} where {', '.join(map(str, b)) or 'nothing'} is expected"


def _blocks(op: Operation) -> list[Block]:
    return [r.blocks[0] for r in op.operation.regions]


class If(_Control, ListOp, name="if"):
    """The results of `then` when the i1 scalar `cond` is true, else those of `orelse`. Only one region runs."""

    cond = operand()
    then = region()
    orelse = region()

    @classmethod
    def problem(cls, op: Operation) -> str | None:
        if str(TensorType.of(op.operation.operands[0])) != "i1[]":
            return "the condition is not an i1 scalar"
        return next(filter(None, (_differ("a branch yields", block_results(b), op.operation.results)
                                  for b in _blocks(op))), None)


class While(_Control, ListOp, name="while"):
    """While `cond(carried)` yields true: carried = body(carried). Results are the last carried values."""

    carried = variadic()
    cond = region()
    body = region()

    @classmethod
    def problem(cls, op: Operation) -> str | None:
        carried = list(op.operation.operands)
        cond, body = _blocks(op)
        return (_differ("the condition region yields", block_results(cond), [TensorType((), "i1")])
                or _differ("the condition region takes", cond.arguments, carried)
                or _differ("the body takes", body.arguments, carried)
                or _differ("the body yields", block_results(body), carried)
                or _differ("it gives", op.operation.results, carried))


class Scan(_Control, ListOp, name="scan"):
    """A loop over slices: (carried, ys[i]) = body(carried, xs[i]) for each i; results: last carried, stacked ys.

    xs[k] is cut along `axes[k]`, from its end when `reverse[k]` is 1; ys[k] is stacked along `out_axes[k]`, from
    the end when `out_reverse[k]` is 1. `length` holds the number of steps.
    """

    carried = variadic()
    xs = variadic()
    length = dims()
    axes = integers(())
    reverse = integers(())
    out_axes = integers(())
    out_reverse = integers(())
    body = region()

    @classmethod
    def problem(cls, op: Operation) -> str | None:
        a = attrs_of(op)
        (block,) = _blocks(op)
        carried, xs = (typed(v) for v in grouped_operands(op))
        outs = typed(tuple(block_results(block)))
        ys = outs[len(carried):]
        if not len(a.axes) == len(a.reverse) == len(xs) or not len(a.out_axes) == len(a.out_reverse) == len(ys):
            return "axes and directions do not match the scanned and stacked values"
        slices = [drop_axis(t, d) for t, d in zip(xs, a.axes, strict=True)]
        stacked = [insert_axis(t, d, a.length[0]) for t, d in zip(ys, a.out_axes, strict=True)]
        return (_differ("the body takes", block.arguments, [*carried, *slices])
                or _differ("the body yields", outs[:len(carried)], carried)
                or _differ("it gives", op.operation.results, [*carried, *stacked]))


class Dispatch(_Control, ListOp, name="dispatch"):
    """Calls the kernel function `kernel`; `symbols` are the values of the kernel's symbols in those of the caller."""

    args = variadic()
    kernel = symbol_ref()
    symbols = dims(())


class Require(_Control, ListOp, name="require"):
    """Ends the run with an error where the two dims of `equal` differ: an op behind it takes them to be the same.

    `message` says which.
    """

    equal = dims()
    message = text()
    result_names = ()

    @classmethod
    def problem(cls, op: Operation) -> str | None:
        count = len(attrs_of(op).equal)
        return None if count == 2 else f"compares two dims, not {count}"


class Fail(_Control, ListOp, name="fail"):
    """Ends the run with the error `message`. Its results stand for what a branch that cannot run would have given."""

    message = text()


@dataclass(frozen=True)
class Never:
    """What the maker of a branch returns in place of values when the branch cannot run, and why."""

    message: str


def drop_axis(t: TensorType, axis: int) -> TensorType:
    return t.with_shape([n for d, n in enumerate(t.shape) if d != axis])


def insert_axis(t: TensorType, axis: int, size: Dim) -> TensorType:
    return t.with_shape([*t.shape[:axis], size, *t.shape[axis:]])


def yield_(*values: Value) -> Operation:
    """xt.yield; returns the op."""
    return create(Yield, (values,), {}, [])


def _block(region: Region, arguments: Sequence[Type], make: Callable[..., Any]) -> list[Value] | Never:
    """Fills `region` with one block; `make` gets its arguments and returns what is yielded."""
    block = region.blocks.append(*arguments, arg_locs=[ir.Location.current] * len(arguments))
    with ir.InsertionPoint(block):
        out = make(*block.arguments)
        if isinstance(out, Never):
            return out
        values = list(out) if isinstance(out, (tuple, list)) else [out]
        yield_(*values)
    return values


def _rebuilt(op: Operation, results: Sequence[TensorType]) -> tuple[Value, ...]:
    """`op`, which was built without results, replaced by one that has them; regions move over."""
    old = op.operation
    new = ir.Operation.create(old.name, results=[t.mlir() for t in results], operands=list(old.operands),
                              attributes={k: old.attributes[k] for k in old.attributes}, regions=len(old.regions),
                              loc=old.location, ip=ir.InsertionPoint(old))
    for source, target in zip(old.regions, new.regions, strict=True):
        source.blocks[0].append_to(target)
    old.erase()
    return tuple(new.results)


def if_(cond: Value, then: Callable[[], Any], orelse: Callable[[], Any], *,
        fresh: Callable[[], Dim] | None = None) -> tuple[Value, ...]:
    """xt.if. `then` and `orelse` build their regions and return the values they yield, or a Never.

    Where the branches' dims differ, `fresh` gives a new symbol for the result's; without it they must agree. Misfit
    when neither branch can run, UserError when they give different kinds of values.
    """
    op = create(If, (cond,), {}, [])
    made = [_block(r, (), f) for r, f in zip(op.operation.regions, (then, orelse), strict=True)]
    never = [m.message for m in made if isinstance(m, Never)]
    if len(never) == 2:
        op.operation.erase()
        raise Misfit(f"xt.if: neither branch fits: {never[0]}; {never[1]}")
    kinds = [typed(tuple(m)) for m in made if not isinstance(m, Never)]
    if never:
        _fail(op.operation.regions[0 if isinstance(made[0], Never) else 1].blocks[0], never[0], kinds[0])
    try:
        results = [_either(t, u, fresh) for t, u in zip(kinds[0], kinds[-1], strict=True)]
    except (Misfit, ValueError):
        op.operation.erase()
        raise UserError(f"xt.if: one branch yields {', '.join(map(str, kinds[0]))}, the other "
                        f"{', '.join(map(str, kinds[-1]))}") from None
    return _rebuilt(op, results)


def _fail(block: Block, message: str, kinds: Sequence[TensorType]) -> None:
    """Ends `block` with an xt.fail that gives values of `kinds`."""
    with ir.InsertionPoint(block):
        op = create(Fail, (), {"message": Fail.attribute_fields["message"].encode(message)}, [t.mlir() for t in kinds])
        yield_(*op.results)


def _either(t: TensorType, u: TensorType, fresh: Callable[[], Dim] | None) -> TensorType:
    """The type of a value that is a `t` or a `u`."""
    if t.dtype != u.dtype or t.rank != u.rank:
        raise Misfit("")
    shape: list[Dim] = []
    for m, n in zip(t.shape, u.shape, strict=True):
        merged = merge_dim(m, n) if fresh is None else m if m - n == 0 else fresh()
        if merged is None:
            raise Misfit("")
        shape.append(merged)
    return t.with_shape(shape)


def while_(carried: Sequence[Any], cond: Callable[..., Any], body: Callable[..., Any]) -> tuple[Any, ...]:
    """xt.while. `cond` and `body` get the carried values; they return an i1 scalar and the new carried values."""
    kinds = [v.type for v in carried]
    op = create(While, (tuple(carried),), {}, kinds)
    for r, f in zip(op.operation.regions, (cond, body), strict=True):
        _block(r, kinds, f)
    return tuple(op.operation.results)


def scan(carried: Sequence[Value], xs: Sequence[Value], body: Callable[..., Any], *, axes: Sequence[int] | None = None,
         reverse: Sequence[int] | None = None, out_axes: Sequence[int] | None = None,
         out_reverse: Sequence[int] | None = None, length: Dim | None = None) -> tuple[Value, ...]:
    """xt.scan. `body(carried, slices)` returns (new carried, ys), both sequences. `length` is needed without `xs`."""
    x_types = typed(tuple(xs))
    axes = [d % t.rank for d, t in zip(axes or [0] * len(x_types), x_types, strict=True)]
    if length is None:
        if not x_types:
            raise UserError("xt.scan: needs `length` or at least one scanned value")
        length = x_types[0].shape[axes[0]]
    state = typed(tuple(carried))
    stacked: list[Any] = []

    def make(*arguments: Value) -> list[Value]:
        new, ys = body(tuple(arguments[:len(state)]), tuple(arguments[len(state):]))
        stacked.extend(ys)
        return [*new, *ys]

    attributes = {"length": (length,), "axes": axes, "reverse": reverse or [0] * len(axes), "out_axes": (),
                  "out_reverse": ()}
    op = create(Scan, (tuple(carried), tuple(xs)), {k: Scan.attribute_fields[k].encode(v)
                                                    for k, v in attributes.items()}, [])
    arguments = [t.mlir() for t in (*state, *(drop_axis(t, d) for t, d in zip(x_types, axes, strict=True)))]
    _block(op.operation.regions[0], arguments, make)
    ys = typed(tuple(stacked))
    places = [d % (t.rank + 1) for d, t in zip(out_axes or [0] * len(ys), ys, strict=True)]
    for name, value in (("out_axes", places), ("out_reverse", list(out_reverse or [0] * len(ys)))):
        op.operation.attributes[name] = Scan.attribute_fields[name].encode(value)
    return _rebuilt(op, [*state, *(insert_axis(t, d, length) for t, d in zip(ys, places, strict=True))])


def require(left: Dim, right: Dim, message: str) -> Any:
    """xt.require; returns the op."""
    fields = Require.attribute_fields
    return create(Require, (), {"equal": fields["equal"].encode((left, right)),
                                "message": fields["message"].encode(message)}, [])


BUILDERS.update({"require": require, "yield": yield_, "if": if_, "while": while_, "scan": scan})
