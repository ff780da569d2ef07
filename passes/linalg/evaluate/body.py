"""Evaluates the body of an op at given loop indices: its scalars become tiles, its index arithmetic stays affine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from xcc._mlir import Attribute, Operation, Value, ir, maker, owner_op
from xcc.passes.linalg.build.buffers import storage_type
from xcc.passes.linalg.build.tile_values import Ix, V
from xcc.passes.linalg.evaluate.pieces import InPiece, Pieces, Within, one_piece, own_lanes
from xcc.passes.linalg.kernel.kernel import Op, Tensor
from xcc.passes.linalg.kernel.reduction_body import is_zero
from xcc.passes.shared.values import scalar_attr
from xcc.symbolic import Dim

if TYPE_CHECKING:
    from xcc.passes.linalg.evaluate.tile_eval import Evaluator

ULT = 6     # arith.cmpi's predicate
MASKED = 32     # bits of an element, from which on a mask costs less than a branch


class Body:
    """The body of `op` at the loop indices `env`; `accumulators` replaces output arguments.

    A value is evaluated when it is first asked for. Numbers are tiles (V), those of type index are places (Ix).
    `within`: what is known of a place, in a branch of its own.
    """

    within: Within | InPiece | None = None

    def __init__(self, ev: Evaluator, op: Op, env: dict[str, Ix], accumulators: Mapping[int, V] | None = None) -> None:
        self.ev, self.b, self.op, self.env = ev, ev.b, op, env
        arguments = list(op.block.arguments)
        self._values: dict[Value, V | Ix] = {arguments[len(op.inputs) + n]: v for n, v in (accumulators or {}).items()}

    def yielded(self) -> list[V]:
        """What the body yields."""
        return [self._as_value(self._get(v)) for v in self.op.yielded]

    def value(self, v: Value) -> V:
        """One value of the body."""
        return self._as_value(self._get(v))

    def index(self, v: Value) -> Ix:
        """One place of the body."""
        return self._as_index(self._get(v))

    def nested(self, within: Within | InPiece | None) -> Body:
        """The same for a branch: what is evaluated there is not known outside."""
        inside = Body(self.ev, self.op, self.env)
        inside._values, inside.within = dict(self._values), within
        return inside

    def at(self, loop: int, place: int) -> Body:
        """The same at one place of a loop."""
        return Body(self.ev, self.op, {**self.env, f"i{loop}": Ix(const=place)})

    def _get(self, v: Value) -> V | Ix:
        if v not in self._values:
            self._values[v] = self._evaluated(v)
        return self._values[v]

    def _evaluated(self, v: Value) -> V | Ix:
        owner = v.owner
        if isinstance(owner, ir.Block):
            return self._argument(v) if owner == self.op.block else self._outer(v)
        return self._result(owner, v) if owner.operation.block == self.op.block else self._outer(v)

    def _argument(self, v: Value) -> V | Ix:
        """An element of an input."""
        t, access = self.op.inputs[ir.BlockArgument(v).arg_number]
        tile = self.ev.tile(t, [self.b.access(e, self.env) for e in access])
        return self._as_index(tile) if isinstance(v.type, ir.IndexType) else tile

    def _outer(self, v: Value) -> V | Ix:
        """A value defined outside the body: a symbol, a constant, index arithmetic on them."""
        for name, symbol in self.ev.kernel.symbols.items():
            if v == symbol:
                return self.b.ix_of(self.b.symbols[name])
        owner = owner_op(v)
        if owner.name == "arith.constant":
            constant = V(self.b.constant(owner.attributes["value"], v.type))
            return self.b.ix_of(constant.value) if isinstance(v.type, ir.IndexType) else constant
        if isinstance(v.type, ir.IndexType):
            operands = [self._as_index(self._outer(x)) for x in owner.operands]
            return self._index_op(owner.name, operands)
        operands_v = [self._as_value(self._outer(x)) for x in owner.operands]
        return self.b.elementwise(owner.name, v.type, operands_v, attributes_of(owner))

    def _result(self, owner: Operation, v: Value) -> V | Ix:
        """What an op of the body gives."""
        name = owner.name
        if name == "linalg.index":
            return self.env.get(f"i{int(owner.attributes['dim'].value)}", Ix())
        if name == "arith.constant":
            constant = self.b.constant(owner.attributes["value"], v.type)
            return self.b.ix_of(constant) if isinstance(v.type, ir.IndexType) else V(constant)
        if name == "tensor.extract":
            t = self.ev.kernel.by_value[owner.operands[0]]
            return self.ev.tile(t, self._places(t, owner))
        if name == "arith.select" and self.op in self.ev.in_piece:
            return self._piece(owner)
        if name == "arith.select":
            chosen = self._guarded_read(owner) or own_lanes(self, owner) if self.ev.memory.access == "gather" \
                else self._padded_read(owner) or one_piece(self, owner)
            if chosen is not None:
                return chosen
        operands = [self._get(x) for x in owner.operands]
        if isinstance(v.type, ir.IndexType):
            if name in ("arith.index_cast", "arith.index_castui") and isinstance(operands[0], V):
                return self._as_index(self.b.elementwise(name, v.type, [operands[0]], {}))
            if name == "arith.select":
                return self._as_index(self.b.elementwise(name, v.type, [self._as_value(x) for x in operands], {}))
            return self._index_op(name, [self._as_index(x) for x in operands])
        return self.b.elementwise(name, v.type, [self._as_value(x) for x in operands], attributes_of(owner))

    def _places(self, t: Tensor, read: Operation) -> list[Ix]:
        """Where in `t` a tensor.extract reads."""
        indices = [self._as_index(self._get(x)) for x in list(read.operands)[1:]]
        return [indices[group[0]] for group in t.groups]

    def read_where(self, read: Operation, test: V) -> V | None:
        """What a tensor.extract gives where `test` holds, 0 elsewhere; None where it reads no buffer."""
        t = self.ev.kernel.by_value[read.operands[0]]
        if t.producer is not None or t.constant is not None:
            return None
        indices, kind = self._places(t, read), read.results[0].type
        if any(i.axes for i in indices):
            return self.ev.memory.load(t, indices, test)
        zero = V(self.b.constant(scalar_attr(kind, 0), kind))
        return self.b.elementwise("arith.select", kind, [test, self.ev.memory.load(t, indices), zero], {})

    def _piece(self, select: Operation) -> V:
        """The tile of the piece that the loop around is in."""
        within, pieces = self.ev.in_piece[self.op], Pieces.of(select)
        assert pieces is not None
        return self.nested(within).value(pieces.values[within.number])

    def _guarded_read(self, owner: Operation) -> V | None:
        """select(test, element of an argument, 0): a gather of the elements that pass the test alone."""
        read, other = owner.operands[1].owner, owner.operands[2].owner
        if isinstance(read, ir.Block) or isinstance(other, ir.Block) or read.name != "tensor.extract" \
                or other.name != "arith.constant" or not is_zero(other.attributes["value"]):
            return None
        t = self.ev.kernel.by_value[read.operands[0]]
        if t.producer is not None or t.constant is not None:
            return None
        indices = self._places(t, read)
        if not self.ev.memory.gathers(t, indices):
            return None
        inside = t not in self.ev.memory.moved and _of_places(owner.operands[0]) and all(
            a.limit is None or _clamped_to(i, size) for i, size in zip(indices, t.dims, strict=True) for a in i.axes)
        return self.ev.memory.load(t, indices, self.value(owner.operands[0]), inside)

    def _padded_read(self, owner: Operation) -> V | None:
        """select(test, element of an argument, constant) where the test holds inside of the last dim, to which the
        place is clamped, alone: a masked read along it."""
        read, other = (v.owner for v in list(owner.operands)[1:])
        if isinstance(read, ir.Block) or isinstance(other, ir.Block) or read.name != "tensor.extract" \
                or other.name != "arith.constant":
            return None
        t, place = self.ev.kernel.by_value[read.operands[0]], list(read.operands)[-1]
        if t.producer is not None or t.constant is not None or t in self.ev.memory.moved \
                or storage_type(t.element) != t.element or not self._tests_range(owner.operands[0], place):
            return None
        indices = self._places(t, read)
        if not indices or indices[-1].walk is None or not all(i.is_scalar for i in indices[:-1]):
            return None
        test, _, padding = owner.operands
        everywhere = self._everywhere(test) if t.element.width < MASKED else None
        return self.ev.memory.load_where(t, indices, self.value(test), self.value(padding), everywhere)

    def _everywhere(self, test: Value) -> Value | None:
        """Whether `test` holds for all of the tile: of comparisons with sizes, for its first and its last element.
        None where that says nothing."""
        bit = ir.IntegerType.get_signless(1)
        if (both := maker(test, "arith.andi")) is not None:
            sides = [s for v in both.operands if (s := self._everywhere(v)) is not None]
            return self.b.pure("arith.andi", bit, sides) if len(sides) == 2 else None
        compared = maker(test, "arith.cmpi")
        if not (v := self.value(test)).axes:
            return v.value
        if compared is None or compared.attributes["predicate"].value != ULT:
            return None
        walk, size = (self.index(x) for x in compared.operands)
        if len(walk.coefs) != 1 or walk.coefs[0][1] != 1 or not size.is_scalar:
            return None
        first, last = self.b.scalar(walk), self.b.int(walk.axes[0].size - 1)
        ends = [self.b.pure("arith.cmpi", bit, [at, self.b.scalar(size)], predicate=compared.attributes["predicate"])
                for at in (first, self.b.add(first, last))]
        return self.b.pure("arith.andi", bit, ends)

    def _tests_range(self, test: Value, place: Value) -> bool:
        """Whether `test` implies that `place`, max(min(at, n - 1), 0), is `at`: 0 <= at < n, as one comparison."""
        over = maker(place, "arith.maxsi")
        under = maker(over.operands[0], "arith.minsi") if over is not None else None
        if under is None:
            return False
        if (both := maker(test, "arith.andi")) is not None:
            return any(self._tests_range(v, place) for v in both.operands)
        compared = maker(test, "arith.cmpi")
        if compared is None or compared.attributes["predicate"].value != ULT \
                or compared.operands[0] != under.operands[0]:
            return False
        last, size = (self.index(v) for v in (under.operands[1], compared.operands[1]))
        same = last.base is None if size.base is None else last.base is not None and last.base == size.base
        return same and last.is_scalar and size.is_scalar and last.const == size.const - 1

    def _index_op(self, name: str, operands: Sequence[Ix]) -> Ix:
        a, b = operands
        if name == "arith.addi":
            return self.b.ix_add(a, b)
        if name == "arith.subi":
            return self.b.ix_add(a, self.b.ix_scale(b, -1))
        if name == "arith.muli":
            for x, y in ((a, b), (b, a)):
                if not y.axes and y.base is None:
                    return self.b.ix_scale(x, y.const)
        unclamped = self.within.unclamped(name, a, b) if self.within is not None else None
        return self.b.ix_vector(name, a, b) if unclamped is None else unclamped

    def _as_index(self, x: V | Ix) -> Ix:
        if isinstance(x, Ix):
            return x
        return Ix(vec=x) if x.axes else self.b.ix_of(x.value)

    def _as_value(self, x: V | Ix) -> V:
        return x if isinstance(x, V) else self.b.vector(x)


def _of_places(v: Value) -> bool:
    """Whether a value of a body is made of places and sizes alone, not of data."""
    owner = v.owner
    if isinstance(owner, ir.Block):
        return isinstance(v.type, ir.IndexType)
    return owner.name in ("linalg.index", "tensor.dim") or owner.name.startswith("arith.") \
        and all(_of_places(x) for x in owner.operands)


def _clamped_to(i: Ix, size: Dim) -> bool:
    """Whether an index is max(min(walk, last), first) with numbers that lie in a dim of `size`."""
    v = i.vec.value if i.vec is not None else None
    bounds = []
    for name in ("arith.maxsi", "arith.minsi"):
        if v is None or isinstance(v.owner, ir.Block) or v.owner.name != name:
            return False
        v, bound = v.owner.operands
        bounds.append(_number(bound))
    first, last = bounds
    return isinstance(size, int) and first is not None and last is not None and 0 <= first <= last < size


def _number(v: Any) -> int | None:
    """The number in all lanes of an index vector."""
    owner = v.owner
    if isinstance(owner, ir.Block):
        return None
    if owner.name == "vector.broadcast":
        return _number(owner.operands[0])
    attribute = owner.attributes["value"] if owner.name == "arith.constant" else None
    if isinstance(attribute, ir.DenseElementsAttr):
        attribute = ir.DenseElementsAttr(attribute).get_splat_value() if attribute.is_splat else None
    return ir.IntegerAttr(attribute).value if isinstance(attribute, ir.IntegerAttr) else None


def attributes_of(op: Operation) -> dict[str, Attribute]:
    """Every attribute of an op, by name."""
    return dict(op.attributes.items())
