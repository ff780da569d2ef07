"""Walks over rows that begin anywhere begin at the word that their row begins in.

    scf.for %i = 0 to %n step 8192 {                %ahead = %row * %n mod 8, %first = %row * %n - %ahead
      %left = minsi (%n - %i), 8192                 scf.for %j = 0 to 8192 step 8192 { ... in the row ... }
      %m = vector.create_mask %left            ->   scf.for %j = 8192 to %whole step 8192 {
      %t = transfer_read %x[%row, %i], %m             %t = transfer_read %flat[%first + %j]
      ... }                                           ... }
                                                    scf.for %j = %whole to %n + %ahead step 8192 { ... in the row ... }

All accesses are then of whole words, 16 bytes of a thread, and threads that read an element write it. What lies ahead
of the row, and behind it, a mask leaves out in the first and the last step; the steps between have none. Of arrays that
are walked along the same rows, of any types: rows begin within words of the one as within those of the other. Rows that
are one step, or are walked beside what begins elsewhere (a weight for each column), are left as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xcc._mlir import Module, Operation, Value, arith_d, ir, maker
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.gpu.layout.tile_kernel import tile_kernels
from xcc.passes.gpu.memory.access import Access
from xcc.passes.shared.patterns import int_constant
from xcc.passes.shared.values import index, op, splat_constant, whole_transfer, with_operands
from xcc.passes.walk import walk
from xcc.targets.base import Chip

ACCESSES = ("vector.transfer_read", "vector.transfer_write")
_I = arith_d.CmpIPredicate
_DYNAMIC = ir.ShapedType.get_dynamic_size()


@register_pass
class AlignWalks(Pass):
    """Begins walks over rows at words of memory."""

    def run(self, module: Module, ctx: PassContext) -> None:
        for k in tile_kernels(module, ctx.chip):
            if k.ops("vector.contract"):
                continue
            for loop in k.ops("scf.for"):
                walked = _Walk.of(loop, ctx.chip)
                if walked is not None:
                    walked.align()


@dataclass(frozen=True)
class _Walk:
    """A loop over rows.

    Attributes:
        loop: the scf.for; `word`: elements that all of its steps are to begin at multiples of.
        accesses: its transfer ops, at the same places of arrays with rows of the same length.
        mask, left: what is of the row in a step, as the mask of all of them and as a number.
    """

    loop: Operation
    word: int
    accesses: list[Operation]
    mask: Operation
    left: Operation

    @staticmethod
    def of(loop: Operation, chip: Chip) -> _Walk | None:
        block, (lower, upper, step) = loop.regions[0].blocks[0], list(loop.operands)[:3]
        ops = [o for o in walk(block) if o.name in ACCESSES]
        if not ops or int_constant(lower) != 0 or any(o.block != block for o in ops):
            return None
        accesses = [Access(o, chip.vector_bytes) for o in ops]
        words = [max(1, chip.vector_bytes // a.bytes) for a in accesses]
        rows = {(_row_sizes(a.memref), tuple(a.indices)) for a in accesses}
        if len(rows) > 1 or None in next(iter(rows))[0] or [a.aligned for a in accesses] == words \
                or not all(a.along == 0 and len(a.shape) == 1 and len(a.sizes) > 1 for a in accesses):
            return None
        *outer, last = accesses[0].indices
        masks = {o.operands[len(o.operands) - 1] for o in ops}
        mask = maker(masks.pop(), "vector.create_mask")
        if last != block.arguments[0] or masks or mask is None or any(_inside(v, loop) for v in outer) \
                or int_constant(step) != accesses[0].shape[0] or accesses[0].shape[0] < chip.warp * max(words):
            return None
        left = maker(mask.operands[0])
        if left is None or not _is_left(left, last, upper, step):
            return None
        return _Walk(loop, max(words), ops, mask, left)

    def align(self) -> None:
        iv = self.loop.regions[0].blocks[0].arguments[0]
        access = Access(self.accesses[0], 1)
        with self.loop.location, ir.InsertionPoint(self.loop):
            at = index(0)
            for place, (d, size) in zip(access.indices[:-1], list(enumerate(access.sizes))[1:], strict=True):
                length = index(size) if size >= 0 else op("memref.dim", [ir.IndexType.get()], [access.memref, index(d)])
                at = arith_d.muli(arith_d.addi(at, place), length)
            first = arith_d.muli(arith_d.divui(at, index(self.word)), index(self.word))
            ahead = arith_d.subi(at, first)
            self.loop.operands[1] = arith_d.addi(self.loop.operands[1], ahead)
            flat = {v: _flat(v) for v in dict.fromkeys(Access(o, 1).memref for o in self.accesses)}
        with self.loop.location, ir.InsertionPoint(self.loop.regions[0].blocks[0].operations[0]):
            own = arith_d.subi(iv, ahead)
            iv.replace_all_uses_except(own, own.owner.operation)
            place = arith_d.addi(first, iv)
        for o in self.accesses:
            _move_to(o, flat[Access(o, 1).memref], place)
        masked = [(use.owner.operation, use.operand_number) for use in self.mask.results[0].uses]
        for user, number in masked:
            with user.location, ir.InsertionPoint(user):
                user.operands[number] = self._mask(iv, ahead)
        users = [use.owner.operation for use in self.left.results[0].uses]
        tests = [user for user in users if user.name == "arith.cmpi" and self.left.name == "arith.minsi"]
        self.mask.erase()
        self._split(masked, tests)

    def _split(self, masked: list[tuple[Operation, int]], tests: list[Operation]) -> None:
        """Puts the loop's whole steps, and what is left behind them, into loops of their own. A whole step has all ones
        in place of the `masked` operands, and `tests` of whether a row ends there do not hold."""
        lower, upper, step, *init = list(self.loop.operands)
        with self.loop.location, ir.InsertionPoint(self.loop):
            whole = arith_d.maxsi(arith_d.muli(arith_d.divui(upper, step), step), step)
            one = arith_d.minsi(upper, step)        # none of an empty row
        middle = self.loop.clone(ip=ir.InsertionPoint.after(self.loop))
        last = self.loop.clone(ip=ir.InsertionPoint.after(middle))
        for old, new in zip(self.loop.results, last.results, strict=True):
            old.replace_all_uses_with(new)
        for loop, operands in ((self.loop, (lower, one, step, *init)),
                               (middle, (step, whole, step, *self.loop.results)),
                               (last, (whole, upper, step, *middle.results))):
            for n, value in enumerate(operands):
                loop.operands[n] = value
        number_of = {o: n for n, o in enumerate(walk(self.loop.regions[0].blocks[0]))}
        asked, filled = [number_of[t] for t in tests], [(number_of[user], number) for user, number in masked]
        for loop in (self.loop, middle, last):
            body = walk(loop.regions[0].blocks[0])
            for n in asked:
                _answer(body[n], loop != middle)
            for n, number in filled if loop == middle else ():
                _fill(body[n], number)

    def _mask(self, iv: Value, ahead: Value) -> Value:
        """The elements of a step that are of the row, made where it is asked for."""
        kind = self.mask.results[0].type
        mask = op("vector.create_mask", [kind], list(self.mask.operands))
        others = op("vector.create_mask", [kind], [arith_d.maxsi(arith_d.subi(ahead, iv), index(0))])
        return arith_d.andi(mask, arith_d.xori(others, splat_constant(kind, 1)))


def _move_to(access: Operation, flat: Value, place: Value) -> None:
    """Has the transfer op be at `place` of `flat`."""
    read = access.name == "vector.transfer_read"
    operands = list(access.operands)
    given = [flat, place, *operands[-2:]] if read else [operands[0], flat, place, operands[-1]]
    with access.location, ir.InsertionPoint(access):
        made = with_operands(access, given, None, whole_transfer(1, [1, 1, 1, 1]))
    _replace(access, made.results)


def _answer(test: Operation, value: bool) -> None:
    """Puts a constant in the place of `test`."""
    with test.location, ir.InsertionPoint(test):
        answer = splat_constant(test.results[0].type, value)
    _replace(test, [answer])


def _fill(user: Operation, number: int) -> None:
    """Has the mask that is this operand be all ones; a transfer op needs none then."""
    with user.location, ir.InsertionPoint(user):
        if user.name not in ACCESSES:
            user.operands[number] = splat_constant(user.operands[number].type, 1)
            return
        made = with_operands(user, list(user.operands)[:-1], None, whole_transfer(1, [1, 1, 1, 0]))
    _replace(user, made.results)


def _replace(old: Operation, values: Sequence[Value]) -> None:
    for result, value in zip(old.results, values, strict=True):
        result.replace_all_uses_with(value)
    old.erase()


def _is_left(left: Operation, iv: Value, upper: Value, step: Value) -> bool:
    """Whether `left` is what is left of a row; or a step of it at most, for a mask and tests whether that is all."""
    if left.name == "arith.subi":
        return list(left.operands) == [upper, iv]
    rest = [maker(v, "arith.subi") for v in left.operands if int_constant(v) != int_constant(step)]
    users = [use.owner.operation for use in left.results[0].uses]
    return len(rest) == 1 and rest[0] is not None and list(rest[0].operands) == [upper, iv] and all(
        u.name == "vector.create_mask" or u.name == "arith.cmpi" and u.operands[0] == left.results[0]
        and u.attributes["predicate"].value == _I.slt.value and int_constant(u.operands[1]) == int_constant(step)
        for u in users) and left.name == "arith.minsi" and sum(u.name == "vector.create_mask" for u in users) == 1


def _inside(value: Value, loop: Operation) -> bool:
    """Whether `value` is made in the body of `loop`."""
    block = loop.regions[0].blocks[0]
    made = maker(value)
    return value.owner == block if made is None else made.block == block


def _row_sizes(memref: Value) -> tuple[int | str | None, ...]:
    """The sizes behind the first one of an array that lies row by row: numbers, or expressions of symbols; None where
    nothing is known."""
    kind = ir.MemRefType(memref.type)
    sizes: list[int | str | None] = list(kind.shape)[1:]
    if kind.layout != ir.AffineMapAttr.get(ir.AffineMap.get_identity(kind.rank)):
        return (None,)
    if min(kind.shape, default=0) >= 0 or all(n != _DYNAMIC for n in sizes):
        return tuple(sizes)
    if not isinstance(memref.owner, ir.Block):
        return (None,)
    attributes, number = memref.owner.owner.operation.attributes, ir.BlockArgument(memref).arg_number
    given = [dims for name in ("xt.arg_dims", "xt.result_dims") if name in attributes
             for dims in ir.ArrayAttr(attributes[name])]
    return tuple(str(n) for n in list(ir.ArrayAttr(given[number]))[1:]) if number < len(given) else (None,)


def _flat(memref: Value) -> Value:
    """The array as one row."""
    kind = ir.MemRefType(memref.type)
    sizes = list(kind.shape)
    whole = 1
    for n in sizes:
        whole = _DYNAMIC if _DYNAMIC in (n, whole) else whole * n
    together = ir.Attribute.parse(f"[[{', '.join(map(str, range(len(sizes))))}]]")
    return op("memref.collapse_shape", [ir.MemRefType.get([whole], kind.element_type)], [memref],
              reassociation=together)
