"""Products of computed values for instructions that sum groups: which side goes into panels, and how the other lies."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xcc._mlir import Operation, Value, ir, owner_op
from xcc.dialects import xt
from xcc.passes.shared.packing import TILE_GROUPS, tile_groups
from xcc.passes.xt.graph.op_graph import NOMINAL_DIM
from xcc.passes.xt.graph.rewrite import producer
from xcc.passes.xt.products.groups import filled, in_groups
from xcc.passes.xt.products.panels import panel_width
from xcc.passes.xt.products.product_sides import before_transpose
from xcc.symbolic import Dim, ceildiv, floordiv, mod, product

PACKED = 2      # elements that are transposed in the time that one is brought into panels
SUMS_READ = 3   # elements of a row that are copied in the time that a sum of 32 bits is stored and read again
MANY = 1024     # columns where their number is not known: those of a layer are more than its rows


@dataclass(frozen=True)
class Groups:
    """What right sides are brought into.

    Attributes:
        group: elements of a group, which one instruction multiplies and sums.
        width: columns of a panel, at most.
        tiles: whether tile registers take groups, and whole panels of them.
    """

    group: int
    width: int
    tiles: bool

    @property
    def step(self) -> int:
        """Terms of a sum that a tile register holds."""
        return self.group * TILE_GROUPS


def grouped(op: Operation, to: Groups) -> Value | None:
    """A product of computed values: the right one goes into panels of groups, as weights do.

    Before: ``dot_general(a, b)`` with a: [.., M, K] and b: [.., K, N], their last dims in any order
    After:  ``packed_matmul(a, b') {columns = [N]}`` with b': [.., ceil(N / P), ceil(K / G), P, G], zeros around; a
    sum of unknown length is one over blocks, of b': [.., ceil(N / P), Q, K / Q / G, P, G].

    For tile registers also ``transpose(packed_matmul(b, a'))`` where b lies along the sum and a is smaller: a panel
    copies what it holds. So does what fills rows of the left side up with zeros: where these are longer than rows of
    the result, the sum is one of whole tiles and one of what is left.
    Without tile registers columns are not filled up where they are known, or that alone would copy b: they stay
    together, as a dot_general of [.., M, K / G, G] and [.., K / G, N, G].
    """
    turned = _exchanged(op) if to.tiles else None
    made = None if turned is None else _in_panels(owner_op(turned), to)
    if made is None:
        return _in_panels(op, to)
    batch, shape = len(xt.attrs_of(op).rhs_batch), xt.shape_of(op.results[0])
    made = xt.transpose(made, perm=(*range(batch), batch + 1, batch))
    return made if xt.shape_of(made) == shape else xt.reshape(made, shape=shape)


def _exchanged(op: Operation) -> Value | None:
    """The product with its sides exchanged, where the right one lies along the sum and the left one is smaller, by more
    than it costs to transpose the result. Columns whose number is not known are taken to be more than rows."""
    a, (lhs, rhs) = xt.attrs_of(op), op.operands
    source, order = before_transpose(rhs)
    batch, left, right = len(a.rhs_batch), xt.shape_of(lhs), xt.shape_of(source)
    if xt.TensorType.of(lhs).dtype != xt.TensorType.of(rhs).dtype or len(right) != batch + 2 \
            or not tuple(a.lhs_batch) == tuple(a.rhs_batch) == tuple(order[:batch]) == tuple(range(batch)) \
            or len(a.lhs_contract) != 1 or order[a.rhs_contract[0]] != batch + 1:
        return None
    summed = a.lhs_contract[0]
    rows = tuple(d for n, d in enumerate(left) if n >= batch and n != summed)
    m, n, k = _size(rows, NOMINAL_DIM), _size(right[batch:-1], MANY), _size(right[-1:], NOMINAL_DIM)
    if rows == right[batch:-1] or PACKED * k * (n - m) < m * n:
        return None
    if len(rows) != 1:
        if summed != len(left) - 1:
            return None
        lhs, summed = xt.reshape(lhs, shape=(*left[:batch], product(rows), left[-1])), batch + 1
    return xt.dot_general(source, lhs, **(vars(a) | {"lhs_contract": (batch + 1,), "rhs_contract": (summed,)}))


def _in_panels(op: Operation, to: Groups) -> Value | None:
    a, (lhs, rhs) = xt.attrs_of(op), op.operands
    dims, batch, last = xt.shape_of(rhs), len(a.rhs_batch), len(xt.shape_of(lhs)) - 1
    leading = tuple(a.lhs_batch) == tuple(a.rhs_batch) == tuple(range(batch))
    if not leading or len(a.lhs_contract) != 1 or len(dims) != batch + 2:
        return None
    k, summed = a.rhs_contract[0], a.lhs_contract[0]
    depths = (dims[k], xt.shape_of(lhs)[summed])
    depth = next((d for d in depths if isinstance(d, int)), dims[k])        # of two that are assumed to be equal
    if summed != last:
        lhs = xt.transpose(lhs, perm=(*(d for d in range(last + 1) if d != summed), summed))
    elif depths[0] == depths[1] and to.tiles and _cut_pays(op, to):
        whole = to.step * floordiv(depth, to.step)
        rest = depth - whole if isinstance(depth, int) else to.step
        wide = xt.TensorType.of(op.results[0]).dtype
        parts = [_packed(op, _part(lhs, last, *ends), _part(rhs, k, *ends), size, "f32", to)
                 for ends, size in (((0, whole), whole), ((whole, depth), rest))]
        return xt.convert(xt.add(*parts), dtype=wide)
    return _packed(op, lhs, rhs, depth, a.dtype, to)


def _cut_pays(op: Operation, to: Groups) -> bool:
    """Whether the left side, an input, would be copied for some zeros in each row, and the result is less."""
    lhs, depth = op.operands[0], xt.shape_of(op.operands[0])[-1]
    columns = xt.shape_of(op.results[0])[-1]
    if not _is_input(lhs) or not xt.is_float(xt.TensorType.of(lhs).dtype):
        return False
    if isinstance(depth, int) and (depth < to.step or groups_of(depth, to, columns) * to.group == depth):
        return False
    return mod(depth, to.step) != 0 and \
        SUMS_READ * _size((columns,), NOMINAL_DIM) <= _size((depth,), NOMINAL_DIM)


def _size(dims: tuple[Dim, ...], unknown: int) -> int:
    """The product of `dims`, those that are not known together `unknown`."""
    known = [d for d in dims if isinstance(d, int)]
    return prod(known) * (unknown if len(known) < len(dims) else 1)


def _part(x: Value, axis: int, start: Dim, limit: Dim) -> Value:
    """A slice of `x` along `axis`, below the transpose that makes it, if one does."""
    source, order = before_transpose(x)
    shape, axis = xt.shape_of(source), order[axis]
    part = xt.slice(source, starts=tuple(start if d == axis else 0 for d in range(len(shape))),
                    limits=tuple(limit if d == axis else size for d, size in enumerate(shape)))
    return part if source == x else xt.transpose(part, perm=order)


def _is_input(x: Value) -> bool:
    """Whether `x` is an argument, maybe in another shape."""
    op = producer(x, "reshape")
    return _is_input(op.operands[0]) if op is not None else isinstance(x.owner, ir.Block)


def _packed(op: Operation, lhs: Value, rhs: Value, depth: Dim, dtype: str, to: Groups) -> Value:
    """The product of the sides of `op`, or of parts of them, with the sum filled up to `depth` and whole groups."""
    a, dims = xt.attrs_of(op), xt.shape_of(rhs)
    batch, last, k = len(a.rhs_batch), len(xt.shape_of(lhs)) - 1, a.rhs_contract[0]
    columns, group = dims[2 * batch + 1 - k], to.group
    blocks: tuple[Dim, ...] = (groups_of(depth, to, columns),) if isinstance(depth, int) \
        else (ceildiv(depth, to.step), TILE_GROUPS)      # blocks of a sum of unknown length
    width = panel_width(columns, to.width, False) if isinstance(columns, int) else to.width
    left = filled(lhs, product(blocks) * group - xt.shape_of(lhs)[-1])
    place, outer = (*range(batch), k, 2 * batch + 1 - k), xt.shape_of(left)[:-1]
    together = isinstance(columns, int) or product(blocks) * group == dims[k]
    if not to.tiles and together and mod(columns, width) != 0:
        right = xt.reshape(in_groups(rhs, place, batch, (*blocks, group), (1, columns)),
                           shape=(*dims[:batch], *blocks, columns, group))
        n = batch + len(blocks)
        return xt.dot_general(xt.reshape(left, shape=(*outer, *blocks, group)), right, lhs_batch=a.lhs_batch,
                              rhs_batch=a.rhs_batch, lhs_contract=tuple(range(last, last + len(blocks) + 1)),
                              rhs_contract=(*range(batch, n), n + 1), dtype=dtype)
    right = in_groups(rhs, place, batch, (*blocks, group), (ceildiv(columns, width), width))
    return xt.packed_matmul(left, right, columns=(columns,), batch=batch, dtype=dtype)


def groups_of(depth: int, to: Groups, columns: Dim = 0) -> int:
    """Groups of a sum of `depth` terms: more than it needs, of zeros, where tile registers take them faster for so many
    columns, if that is known."""
    least = -(-depth // to.group)
    return tile_groups(least, columns if isinstance(columns, int) else 0) if to.group > 1 and to.tiles else least
