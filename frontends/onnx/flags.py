"""How many flags of a mask are set: one symbol, whichever node asks.

``hidden[~mask] = 0`` is exported as ScatterND(hidden, Transpose(NonZero(m)), Expand(0, ReduceSum(Cast(m)))) with m =
Not(mask). The size that ReduceSum computes is the one that NonZero counts:

    %at = "xt.nonzero"(%m) {symbol = "c"}
    %sum = "xt.reduce"(...)                 its data are known as [c]

Where a size follows from a sum of flags that no node has counted, the import starts again and counts them there. There
are at most as many as the mask has elements, so that no option has to bound them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xcc import symbolic
from xcc._mlir import Value, ir, maker, owner_op
from xcc.dialects import xt
from xcc.frontends.shared.helpers import element
from xcc.symbolic import Dim

if TYPE_CHECKING:
    from xcc.frontends.onnx.importer import ModelImporter

__all__ = ["Flags"]

_WIDE = ("i32", "i64", "ui32", "ui64")
"""Types in which a sum of flags does not wrap."""

Key = tuple[Value, bool]


class Flags:
    """The counts of one model's masks, those outside of branches and loops. `wanted` are the sums to be counted."""

    def __init__(self, model: ModelImporter, wanted: frozenset[str]) -> None:
        self.model = model
        self.wanted = wanted
        self._symbols: dict[Key, str] = {}
        self._places: dict[tuple[Key, tuple[Dim, ...]], Value] = {}
        self._sums: dict[Value, str] = {}     # those that are not counted

    def places(self, x: Value) -> Value | None:
        """The xt.nonzero that there is of `x`, or of what has the same flags; None if there is none."""
        return self._places.get((_key(x), xt.shape_of(x)))

    def note(self, x: Value, symbol: str, places: Value | None = None) -> None:
        """The op made last, which defines `symbol`, counts the elements of `x` that are not zero: at `places`."""
        if not self._in_entry():
            return
        self._symbols.setdefault(_key(x), symbol)
        if places is not None:
            self._places[_key(x), xt.shape_of(x)] = places

    def sum_of(self, value: Value, name: str) -> Dim | None:
        """How many flags the sum `value`, called `name`, counts; None where that is no size yet."""
        mask = _summed(value)
        if mask is None:
            return None
        if self._in_entry() and _key(mask) not in self._symbols:
            if name not in self.wanted:
                self._sums[value] = name
                return None
            symbol = self.model.fresh_symbol(name)
            flags = xt.reshape(mask, shape=(symbolic.product(xt.shape_of(mask)),))
            xt.compress(flags, flags, symbol=symbol, axis=0, flat=False)
            self.note(mask, symbol)
        found = self._symbols.get(_key(mask))
        return None if found is None else symbolic.sym(found)

    def behind(self, value: Value) -> frozenset[str]:
        """The sums of flags, not counted, that `value` is computed from, walking outside regions only."""
        seen, todo = {value}, [value]
        while todo:
            op = maker(todo.pop())
            before = set(op.operands) - seen if op is not None else set()
            seen |= before
            todo.extend(before)
        return frozenset(name for v, name in self._sums.items() if v in seen)

    def _in_entry(self) -> bool:
        return bool(ir.InsertionPoint.current.block == self.model.entry)


def _summed(value: Value) -> Value | None:
    """The mask, a tensor of i1, whose flags `value` counts: the sum of all of them; None for any other value."""
    flags = _operand(value, "reduce")
    if flags is None or element(value) not in _WIDE or not _is_flags(flags):
        return None
    a = xt.attrs_of(owner_op(value))
    if a.kind != "sum" or len(a.axes) != len(xt.shape_of(flags)):
        return None
    while element(flags) != "i1":
        flags = owner_op(flags).operands[0]
    return flags


def _is_flags(x: Value) -> bool:
    """Whether each element of `x` is 0 or 1, as it was a boolean."""
    while element(x) != "i1":
        inner = _operand(x, "reshape", "convert")
        if inner is None:
            return False
        x = inner
    return True


def _key(x: Value) -> Key:
    """Equal for values that have the same number of elements that are not zero."""
    negated = False
    while True:
        if (before := _operand(x, "reshape")) is not None:
            x = before
        elif (before := _operand(x, "convert")) is not None and (element(x) == "i1" or _is_flags(before)):
            x = before
        elif element(x) == "i1" and (before := _operand(x, "not")) is not None:
            x, negated = before, not negated
        else:
            return x, negated


def _operand(x: Value, *names: str) -> Value | None:
    """The operand of the op that makes `x`, if it is one of `names`."""
    op = maker(x, *(f"xt.{n}" for n in names))
    return None if op is None else op.operands[0]
