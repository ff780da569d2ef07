"""Other sides for a matrix product: what a transpose or a scale of channels was made of."""

from __future__ import annotations

from xcc._mlir import Operation, Value, ir
from xcc.dialects import xt
from xcc.passes.shared.packing import DOT_ROWS, DOT_STEPS, ROWS_PART, STACK, TURNED, panel_steps
from xcc.passes.xt.graph.op_graph import nominal_count
from xcc.passes.xt.graph.rewrite import is_pointwise, producer
from xcc.targets.base import Chip

MANY_ROWS = 8  # of a product, that pay for a transpose of its right side
FEW_BLOCKS = 2     # of rows, each of which turns all of the right side on the way
WIDENED = ("f32", "f16", "bf16")     # a vector at a time, in registers
FEWER = 2      # pixels of an image for each column of the weights, from which on weights are scaled in its place


def scaled_channels(product: Operation, columns: int) -> tuple[Value, Value] | None:
    """(image, scale) where `product` is of an image [n, ..., channels] times its channels' scale [n, 1, ..., channels].

    There are fewer weights to scale than elements. What else reads the scaled image scales it itself: pointwise ops.
    """
    x = product.operands[0]
    mul, shape = producer(x, "mul"), xt.shape_of(x)
    others = {use.owner.operation for use in x.uses} - {product}
    plain = {xt.TensorType.of(v).dtype for v in product.operands} == {"f32"}       # narrow weights are not scaled
    if mul is None or len(shape) < 3 or not plain or not all(map(is_pointwise, others)):
        return None
    for image, scale in (tuple(mul.operands), tuple(mul.operands)[::-1]):
        dims = xt.shape_of(scale)
        if xt.shape_of(image) == shape and len(dims) == len(shape) and dims[-1] == shape[-1] != 1 \
                and dims[0] == shape[0] and all(d == 1 for d in dims[1:-1]) \
                and nominal_count(shape[1:-1], {}) >= FEWER * columns:
            return image, scale
    return None


def in_place(product: Operation) -> Value | None:
    """A product with a vector reads each element of the matrix once, so also one that a transpose would make."""
    a, operands = xt.attrs_of(product), list(product.operands)
    changed = vars(a).copy()
    for n, side in enumerate(("lhs", "rhs")):
        other = ("rhs", "lhs")[n]
        walked = (*changed[f"{other}_batch"], *changed[f"{other}_contract"])
        source, order = before_transpose(operands[n])
        dims, own = xt.shape_of(operands[n]), (*changed[f"{side}_batch"], *changed[f"{side}_contract"])
        free = [d for d in range(len(dims)) if d not in own]
        if source == operands[n] or any(size != 1 for d, size in enumerate(xt.shape_of(operands[1 - n]))
                                        if d not in walked) or len(free) > 1:
            continue
        operands[n] = source
        for kind in ("batch", "contract"):
            changed[f"{side}_{kind}"] = tuple(order[d] for d in changed[f"{side}_{kind}"])
    return None if operands == list(product.operands) else xt.dot_general(*operands, **changed)


def as_dots(product: Operation) -> tuple[bool, Value | None]:
    """Whether the product's results are long dot products of a few rows of f32 with columns that lie along the sum, of
    16-bit floats, too, and the product that reads these as they lie, None where it does already."""
    a, (lhs, rhs) = xt.attrs_of(product), product.operands
    source, order = before_transpose(rhs)
    left, dims = xt.shape_of(lhs), xt.shape_of(rhs)
    rows = [d for n, d in enumerate(left) if n not in (*a.lhs_batch, *a.lhs_contract) and d != 1]
    kinds = [xt.TensorType.of(v).dtype for v in product.operands]
    if kinds[0] != "f32" or kinds[1] not in WIDENED or len(a.rhs_contract) != 1 \
            or len(a.rhs_batch) + 2 != len(dims) or len(rows) != 1 or not isinstance(rows[0], int) \
            or not 1 < rows[0] <= DOT_ROWS:
        return False, None
    steps, last = dims[a.rhs_contract[0]], len(dims) - 1
    if isinstance(steps, int) and steps < DOT_STEPS or order[a.rhs_contract[0]] != last \
            or a.lhs_contract[0] != len(left) - 1:
        return False, None
    batch = tuple(order[d] for d in a.rhs_batch)
    return True, None if source == rhs else xt.dot_general(
        lhs, source, **(vars(a) | {"rhs_contract": (last,), "rhs_batch": batch}))


def turned_later(product: Operation, chip: Chip | None, columns: int) -> tuple[bool, Value | None]:
    """Whether the product's kernel is to turn its right side on the way, in panels of so many `columns`, and the
    product that reads that side as it lies, None where it does already.

    For a matrix of the model's inputs, with a column's steps next to each other: a transpose ahead of the product would
    write it to memory and read it again. Where there are so many rows that their blocks turn it several times, that is
    worth it; chunks of a product with more rows than columns are such blocks.
    """
    a, (lhs, rhs) = xt.attrs_of(product), product.operands
    dims = xt.shape_of(rhs)
    source, order = before_transpose(rhs)
    if chip is None or len(dims) != 2 or a.rhs_batch or order[a.rhs_contract[0]] != 1 or not _is_input(source) \
            or {xt.TensorType.of(v).dtype for v in product.operands} != {"f32"}:
        return False, None
    steps = dims[a.rhs_contract[0]]
    rows = nominal_count(tuple(d for n, d in enumerate(xt.shape_of(lhs)) if n not in a.lhs_contract), {})
    by_columns = rows < nominal_count((dims[1 - a.rhs_contract[0]],), {})
    if not isinstance(steps, int) or steps % TURNED or 4 * steps * columns > STACK or rows < MANY_ROWS:
        return False, None
    if not by_columns or rows * min(steps, panel_steps(chip, 4 * columns)) > FEW_BLOCKS * ROWS_PART:
        return False, None
    return True, None if source == rhs else xt.dot_general(lhs, source, **(vars(a) | {"rhs_contract": (1,)}))


def _is_input(x: Value) -> bool:
    """Whether `x` is an argument, maybe in another shape."""
    op = producer(x, "reshape")
    return _is_input(op.operands[0]) if op is not None else isinstance(x.owner, ir.Block)


def by_rows(product: Operation) -> Value | None:
    """The product with [.., N, K] on its right as one with [.., K, N]; None where that is not so, or does not pay."""
    a, (lhs, rhs) = xt.attrs_of(product), product.operands
    dims, batch = xt.shape_of(rhs), len(a.rhs_batch)
    if len(dims) != batch + 2 or tuple(a.rhs_batch) != tuple(range(batch)) or tuple(a.rhs_contract) != (batch + 1,):
        return None
    source, order = before_transpose(rhs)
    free = tuple(d for n, d in enumerate(xt.shape_of(lhs)) if n not in (*a.lhs_batch, *a.lhs_contract))
    if dims[batch] == 1 or source == rhs and nominal_count(free, {}) < MANY_ROWS:
        return None
    right = xt.transpose(source, perm=(*order[:batch], order[batch + 1], order[batch]))
    return xt.dot_general(lhs, right, **(vars(a) | {"rhs_contract": (batch,)}))


def before_transpose(x: Value) -> tuple[Value, tuple[int, ...]]:
    """What `x` is a transpose of, and its permutation."""
    op = producer(x, "transpose")
    return (x, tuple(range(len(xt.shape_of(x))))) if op is None else (op.operands[0], tuple(xt.attrs_of(op).perm))
