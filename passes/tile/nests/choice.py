"""Which block values are computed where they are needed, and which are kept in memory."""

from __future__ import annotations

from math import prod

from xcc._mlir import Block, Operation, Value, ir, owner_op
from xcc.passes.shared.updates import UPDATES
from xcc.passes.shared.values import is_elementwise, is_vector
from xcc.passes.tile.nests.together import stores_with
from xcc.passes.walk import ops_where

SCAN = "vector.scan"
LEAVES = ("vector.step", "vector.create_mask", "vector.constant_mask", "vector.broadcast", "vector.transpose")
LOADS = ("vector.transfer_read", "vector.gather")
WRITES = ("vector.transfer_write", "vector.scatter", *UPDATES, "memref.store", "memref.atomic_rmw")
LINE = 64       # bytes of a cache line
DEAR = 6        # operations from which on a value that is needed twice is kept
FUNCTION = 10   # of a function such as exp
_COSTS = {"math.": FUNCTION, "arith.div": 5, "arith.rem": 8, "vector.gather": 8}


def dims_of(transfer: Operation) -> list[int]:
    """The memref's dim that each dim of the tile walks."""
    mapped = ir.AffineMapAttr(transfer.attributes["permutation_map"]).value
    return [ir.AffineDimExpr(e).position for e in mapped.results]


def unit_reshape(op: Operation) -> bool:
    """Whether a shape_cast only adds or drops dims of size 1."""
    source, result = (ir.VectorType(v.type).shape for v in (op.operands[0], op.results[0]))
    return [n for n in source if n > 1] == [n for n in result if n > 1]


def is_view(op: Operation) -> bool:
    """Whether `op` only changes where elements are."""
    return op.name in ("vector.broadcast", "vector.transpose") or (op.name == "vector.shape_cast" and unit_reshape(op))


def of_line(value: Value) -> Value | None:
    """What the operand of an atomic update was before it was made a line; None for one that always was one."""
    op = None if isinstance(value.owner, ir.Block) else value.owner.operation
    return op.operands[0] if op is not None and op.name == "vector.shape_cast" and not unit_reshape(op) else None


def before_lines(update: Operation) -> list[Value]:
    """Value, mask and places of a tile.atomic of a line, of the one shape that they had before; of a tile.compare_swap
    what is expected is ahead of the places."""
    line = [v for i, v in enumerate(update.operands) if i != 1]
    before = [of_line(v) for v in line]
    shapes = {tuple(ir.VectorType(b.type).shape) for b in before if b is not None}
    if len(shapes) != 1 or any(b is None and not _splat(v) for v, b in zip(line, before, strict=True)):
        return line
    return [v if b is None else b for v, b in zip(line, before, strict=True)]


def is_flattened(op: Operation) -> bool:
    """Whether a shape_cast makes lines of what atomic updates take as it is."""
    users = [u.owner.operation for u in op.results[0].uses] if op.name == "vector.shape_cast" else []
    return bool(users) and all(
        u.name in UPDATES and u.block == op.block and op.operands[0] in before_lines(u) for u in users)


def is_lazy(op: Operation) -> bool:
    """Whether the elements of the result can be computed one by one."""
    if op.name == "arith.constant":
        return ir.DenseElementsAttr(op.attributes["value"]).is_splat
    return op.name in LEAVES or op.name in LOADS or is_view(op) or is_elementwise(op) or written_scan(op) \
        or is_flattened(op)


def written_scan(op: Operation) -> bool:
    """Whether a scan is computed by the loops of the one store that needs it, which walk its lines from end to end: as
    they are, or with what else is stored beside each element."""
    if op.name != SCAN or any(True for _ in op.results[1].uses):
        return False
    found = roots(op)
    write = next(iter(found), None)
    if write is None or len(found) > 1 or write.name != "vector.transfer_write" or write.block != op.block:
        return False
    line, kind = ir.VectorType(op.results[0].type), ir.VectorType(write.operands[0].type)
    last = dims_of(write)[-1]
    return line.shape[-1] > 1 and kind.shape[-1] == line.shape[-1] and _splat(op.operands[1]) \
        and last == ir.MemRefType(write.operands[1].type).rank - 1 \
        and _beside(write.operands[0], op) and scans_of(write.operands[0]) == {op}


def _splat(value: Value) -> bool:
    return not isinstance(value.owner, ir.Block) and value.owner.name == "arith.constant" \
        and ir.DenseElementsAttr(value.owner.operation.attributes["value"]).is_splat


def _beside(value: Value, source: Operation) -> bool:
    """Whether each element of `value` needs none of `source`, or the one at its own place."""
    return all(is_elementwise(o) or (o.name == "vector.shape_cast" and unit_reshape(o))
               for o in ahead_of(value) if o != source and source in ahead_of(o.results[0]))


def scans_of(value: Value) -> set[Operation]:
    """The scans that a block value is made of, in its block."""
    return {o for o in ahead_of(value) if o.name == SCAN}


def ahead_of(value: Value) -> set[Operation]:
    """The operations that a block value is made of, in its block."""
    found: set[Operation] = set()
    todo = [value]
    while todo:
        v = todo.pop()
        if not is_vector(v) or isinstance(v.owner, ir.Block) or v.owner.operation in found:
            continue
        found.add(v.owner.operation)
        todo += list(v.owner.operation.operands)
    return found


def writes(op: Operation) -> bool:
    """Whether `op` or what is inside it writes memory."""
    return bool(ops_where(op, lambda o: o.name in WRITES))


def reads_nothing(op: Operation) -> bool:
    """Whether a value is made of positions and scalars alone, cheaply."""
    seen: set[Operation] = set()
    todo = [op]
    while todo:
        op = todo.pop()
        if op in seen or op.name in ("vector.step", "vector.create_mask", "vector.constant_mask", "arith.constant"):
            continue
        seen.add(op)
        made_of = [v for v in op.operands if is_vector(v)]
        if not (is_view(op) or is_elementwise(op)) or op.name.startswith(("math.", "arith.div", "arith.rem")) \
                or any(isinstance(v.owner, ir.Block) for v in made_of):
            return False
        todo += [owner_op(v) for v in made_of]
    return True


def cost_of(op: Operation) -> int:
    """Operations for an element of a lazy value, counted up to FUNCTION. Views and constants are free, and masks of
    places: most loops end where these do."""
    if op.name == "arith.constant" or (_is_mask(op.results[0]) and reads_nothing(op)):
        return 0
    cost = 0 if is_view(op) else next((c for name, c in _COSTS.items() if op.name.startswith(name)), 1)
    for v in op.operands if op.name not in LOADS else ():
        if cost < FUNCTION and is_vector(v) and not isinstance(v.owner, ir.Block) and is_lazy(v.owner.operation):
            cost += cost_of(v.owner.operation)
    return cost


def _roots(op: Operation, block: Block, found: set[Operation], seen: set[Operation]) -> None:
    """The operations of `block` that make the elements of `op` be computed, directly or by way of lazy values."""
    for use in (u for r in op.results for u in r.uses):
        user = use.owner.operation
        if user in seen:
            continue
        seen.add(user)
        if user.block == block and is_lazy(user):
            _roots(user, block, found, seen)
        else:
            found.add(_inside(user, block))


def _is_mask(value: Value) -> bool:
    return bool(ir.VectorType(value.type).element_type == ir.IntegerType.get_signless(1))


def roots(op: Operation) -> set[Operation]:
    """The operations beside `op` that make the elements of its result be computed."""
    found: set[Operation] = set()
    _roots(op, op.block, found, set())
    return found


def _inside(op: Operation, block: Block) -> Operation:
    """The operation of `block` that `op` is, or is inside of."""
    while op.block != block:
        op = op.block.owner.operation
    return op


def kept(op: Operation) -> bool:
    """Whether the result of the lazy operation `op` is computed at once, and kept in memory."""
    if reads_nothing(op):
        return False
    users = [u.owner.operation for r in op.results for u in r.uses]
    if is_view(op):
        return False
    if any(u.block != op.block for u in users):
        return True
    found = roots(op)
    cost = cost_of(op)
    if cost >= DEAR and (len({stores_with(o)[-1] for o in found}) > 1 or any(_stretches(u) for u in users)):
        return True
    if any(r.name in ("scf.for", "scf.while", "scf.if") for r in found):
        return True
    return _reads(op) and not _safe(op, found)


def _stretches(op: Operation) -> bool:
    """Whether elements are needed several times by a broadcast."""
    if op.name == "vector.shape_cast" and unit_reshape(op):
        return any(_stretches(u.owner.operation) for u in op.results[0].uses)
    return op.name == "vector.broadcast" and is_vector(op.operands[0]) \
        and prod(ir.VectorType(op.results[0].type).shape) > prod(ir.VectorType(op.operands[0].type).shape)


def _reads(op: Operation) -> bool:
    return op.name in LOADS


def _safe(op: Operation, needed: set[Operation]) -> bool:
    """Whether what a load reads is still there where its elements are computed: nothing writes between, and the stores
    whose loops need them write other memory, or the same elements."""
    order = [o.operation for o in op.block.operations]
    last = max((order.index(r) for r in needed), default=-1)
    final = stores_with(order[last]) if last >= 0 and writes(order[last]) else []
    if any(writes(o) and o not in final for o in order[order.index(op):last]):
        return False
    return all(_spares(s, op) for s in final)


def _spares(store: Operation, op: Operation) -> bool:
    """Whether `store`, in whose loops the load `op` is computed, writes other memory or the same elements."""
    return op.name == "vector.transfer_read" and store.name == "vector.transfer_write" \
        and (store.operands[1] != op.operands[0] or _same_place(op, store))


def _same_place(read: Operation, write: Operation) -> bool:
    rank = ir.MemRefType(read.operands[0].type).rank
    return list(read.operands)[1:1 + rank] == list(write.operands)[2:2 + rank] \
        and read.results[0].type == write.operands[0].type \
        and read.attributes["permutation_map"] == write.attributes["permutation_map"]
