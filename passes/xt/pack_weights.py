"""Packs the constant right-hand sides of matrix products and convolutions into panels of columns.

A panel holds the columns of one register tile next to each other, row after row: the innermost loop of a product reads
it in order, without a page or a cache set for each row. Where the chip has instructions that sum a few products of
narrow elements, that many rows of a column lie next to each other too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xcc._mlir import Module, Operation, Value, owner_op
from xcc.dialects import xt
from xcc.dialects.xt.numeric import Array
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.shared.dot_instructions import DotProduct, dot_products_of
from xcc.passes.xt.graph.op_graph import nominal_count
from xcc.passes.xt.graph.rewrite import PRODUCTS, at, loop_behind, name_of, producer, rewrite
from xcc.passes.xt.products.block_panels import block_panels
from xcc.passes.xt.products.grouped_sides import Groups, grouped, groups_of
from xcc.passes.xt.products.groups import filled, in_groups, of_groups
from xcc.passes.xt.products.panels import FILLED, pack_columns, panel_width, static_shape
from xcc.passes.xt.products.picked_panels import picked_panels
from xcc.passes.xt.products.product_sides import (
    MANY_ROWS,
    as_dots,
    before_transpose,
    by_rows,
    in_place,
    scaled_channels,
    turned_later,
)
from xcc.passes.xt.quant.decoded import is_decoded, made_with, pad_end, permute, split
from xcc.symbolic import ceildiv
from xcc.targets.base import Chip
from xcc.weights import WeightStore

LEAST = 4      # columns of a panel of a filter: a vector of i32


@register_pass
class PackWeights(Pass):
    """Rearranges weights that a dot_general or an NHWC convolution multiplies with, in the weight store.

    Before: ``dot_general(x, w) {rhs_contract = [0]}`` with w: [K, N], or ``convolution(x, w) {filter = "HWIO"}``
    After:  ``packed_matmul(x, w') {columns = [N]}`` with w': [ceil(N / P), K, P], zeros past column N,
            ``convolution(x, w') {filter = "OHWIo"}`` with w': [O / P, h, w, I, P], where P divides O

    A computed right side lies row by row, too: one that lies along the sum (queries times keys) is transposed, by the
    transpose that makes it where there is one, or where there are enough rows to multiply it with; an input of the
    model that few blocks of rows multiply is left to the product's kernel (pack-columns). A vector multiplies what the
    transpose reads. What is made before a loop whose steps multiply with it goes into panels there. A computed filter
    is brought into panels in the same way; so are computed right sides and filters of bytes and bf16, in groups (of two
    sides that lie along the sum the smaller one, for tile registers), and weights of several matrices, when the model
    is loaded.

    Bytes and bf16 are grouped, w' then being [ceil(N / P), ceil(K / G), P, G] and filter = "OHWIoi"; what is left of
    the last group is zeros in the weights, and x is padded; so are groups that leave tile registers fewer steps. So is
    what outputs of a filter lack to a whole panel, which is not stored. See also block_panels and picked_panels.

    An image times a scale of its channels (squeeze and excite) is not scaled before a product: the panels are, being
    fewer: ``packed_matmul(x * s, w')`` becomes ``packed_matmul(x, w' * s)``, with a batch where s has one.

    width: P; 0 is two native vectors of f32 of the chip.
    dot: the dot product instructions to group for, "vnni", "bf16", ...; empty takes the chip's.
    """

    width: int = 0
    dot: tuple[str, ...] = ()

    def run(self, module: Module, ctx: PassContext) -> None:
        width = self.width or (2 * ctx.chip.vector_bytes // 4 if ctx.chip is not None else 32)
        store = WeightStore() if ctx.weights is None else ctx.weights
        packer = _Packer(store, width, dot_products_of(ctx.chip, self.dot), ctx.chip)
        rewrite(module, dict.fromkeys(PRODUCTS, lambda op: picked_panels(op, width) or packer.packed_form(op)))


class _Packer:
    """`weights`: a text alone has names, no data."""

    def __init__(self, weights: WeightStore, width: int, dot: Sequence[DotProduct], chip: Chip | None) -> None:
        self.weights, self.width, self.dot, self.chip = weights, width, dot, chip
        self.tiles = chip is not None and bool(chip.tile_products)
        self.packed: dict[tuple[str, str], str] = {}

    def packed_form(self, op: Operation) -> Value | None:
        if is_decoded(op.operands[1]):
            return block_panels(op, self.group(op), self.width) or self.decoded(op)
        if producer(op.operands[1], "weight") is None:
            return self.computed(op) if name_of(op) == "dot_general" else self.filter(op)
        if name_of(op) != "dot_general":
            return self.convolution(op)
        return self.product(op) or block_panels(op, self.group(op), self.width) \
            or (grouped(op, self.to(op)) if self.group(op) != 1 else None)

    def weight(self, op: Operation, kind: str, shape: tuple[int, ...], change: Callable[[Array], Array]) -> Value:
        """The weight operand of `op` rearranged; one entry for all who want it so."""
        source, store = op.operands[1], self.weights
        name = xt.attrs_of(owner_op(source)).name
        if (name, kind) not in self.packed:
            self.packed[name, kind] = store.add(f"{name}.{kind}", lambda: change(store[name]))
        return xt.weight(self.packed[name, kind], shape, xt.TensorType.of(source).dtype)

    def group(self, op: Operation) -> int:
        """How many products of the op's operands one instruction sums in a lane; 1 where there is none."""
        left, right = (xt.TensorType.of(v).dtype for v in op.operands)
        return next((d.group for d in self.dot if d.takes(left, right)), 1)

    def to(self, op: Operation) -> Groups:
        """What sides of `op` go into."""
        return Groups(self.group(op), self.width, self.tiles)

    def product(self, op: Operation) -> Value | None:
        a, shape = xt.attrs_of(op), static_shape(op.operands[1])
        last = len(xt.shape_of(op.operands[0])) - 1
        if shape is None or len(shape) != 2 or a.rhs_batch or tuple(a.lhs_contract) != (last,):
            return None
        transposed, group = a.rhs_contract[0] == 1, self.group(op)
        depth, columns = (shape[1], shape[0]) if transposed else shape
        if columns <= self.width and not transposed and group == 1:     # one panel as it is
            return None
        width = panel_width(columns, self.width, group == 1)
        panels, groups = -(-columns // width), groups_of(depth, self.to(op), columns)
        w = self.weight(op, f"panels{width}{'t' if transposed else ''}{f'x{group}' if group > 1 else ''}",
                        (panels, depth, width) if group == 1 else (panels, groups, width, group),
                        lambda w: pack_columns(w.T if transposed else w, width, group, groups))
        scaled = scaled_channels(op, columns) if group == 1 else None
        if scaled is not None:
            (x, scale), n = scaled, xt.shape_of(scaled[1])[0]
            w = xt.mul(xt.reshape(w, shape=(1, panels, depth, width)), xt.reshape(scale, shape=(n, 1, depth, 1)))
            if n == 1:
                w = xt.reshape(w, shape=(panels, depth, width))
            return xt.packed_matmul(x, w, batch=int(n != 1), columns=(columns,), dtype=a.dtype)
        x = filled(op.operands[0], groups * group - depth)
        return xt.packed_matmul(x, w, columns=(columns,), dtype=a.dtype)

    def decoded(self, op: Operation) -> Value | None:
        """A product with what is decoded from narrow weights: these are packed, where that adds few bytes."""
        a, shape, w = xt.attrs_of(op), static_shape(op.operands[1]), op.operands[1]
        if shape is None:
            return None
        if name_of(op) == "convolution":
            if (a.layout, a.filter, a.groups) != ("NHWC", "HWIO", 1):
                return None
            panels = self._panels(w, shape[-1], exact=True)
            return panels and xt.convolution(op.operands[0], panels, **(vars(a) | {"filter": "OHWIo"}))
        last = len(xt.shape_of(op.operands[0])) - 1
        if len(shape) != 2 or a.rhs_batch or tuple(a.lhs_contract) != (last,):
            return None
        transposed = a.rhs_contract[0] == 1
        rhs = made_with(w, permute(2, (1, 0))) if transposed else w
        panels = None if rhs is None else self._panels(rhs, shape[1 - a.rhs_contract[0]])
        if panels is not None:
            columns = shape[1 - a.rhs_contract[0]]
            return xt.packed_matmul(op.operands[0], panels, columns=(columns,), dtype=a.dtype)
        return xt.dot_general(op.operands[0], rhs, **(vars(a) | {"rhs_contract": (0,)})) if transposed and rhs else None

    def _panels(self, w: Value, columns: int, exact: bool = False) -> Value | None:
        """`w` in panels of its last dim; None where it is one panel, or would get many columns more."""
        half, last = self.width // 2, len(xt.shape_of(w)) - 1
        widths = [p for p in (self.width, self.width + half, half) if p < columns
                  and (-columns % p) * (columns if exact else FILLED) <= columns - 1]
        if not widths:
            return None
        width = min(widths, key=lambda p: -columns % p)
        moved: Value | None = w
        for move in (pad_end(last + 1, last, -columns % width), split(last + 1, last, width),
                     permute(last + 2, (last, *range(last), last + 1))):
            moved = None if moved is None else made_with(moved, move)
        return moved

    def computed(self, op: Operation) -> Value | None:
        """A product of computed values."""
        if self.group(op) != 1:
            return grouped(op, self.to(op))
        found = self.before_loop(op) or in_place(op)
        if found is not None:
            return found
        dots, along = as_dots(op)
        if dots:
            return along
        later, turned = turned_later(op, self.chip, self.width)
        return turned if later else by_rows(op)

    def before_loop(self, op: Operation) -> Value | None:
        """A product of each step of a loop with what is made before it: panels of that are made there, too."""
        a, (lhs, rhs), shape = xt.attrs_of(op), op.operands, static_shape(op.operands[1])
        loop = loop_behind(rhs, op)
        if loop is None or shape is None or len(shape) != 2 or a.rhs_batch \
                or tuple(a.lhs_contract) != (len(xt.shape_of(lhs)) - 1,):
            return None
        k = a.rhs_contract[0]
        columns, width = shape[1 - k], panel_width(shape[1 - k], self.width)
        with at(loop):
            panels = in_groups(rhs, (k, 1 - k), 0, (shape[k], 1), (ceildiv(columns, width), width))
            panels = xt.reshape(panels, shape=(ceildiv(columns, width), shape[k], width))
        return xt.packed_matmul(lhs, panels, columns=(columns,), dtype=a.dtype)

    def convolution(self, op: Operation) -> Value | None:
        a, shape = xt.attrs_of(op), static_shape(op.operands[1])
        if a.layout != "NHWC" or a.filter != "HWIO" or a.groups != 1 or shape is None:
            return None
        *kernel, inputs, outputs = shape
        group = self.group(op)
        width = self._filter_width(outputs, group)
        if not width and group == 1:
            return None
        window, groups = int(np.prod(kernel)), groups_of(inputs, self.to(op))
        rest = {k: v for k, v in vars(a).items() if k != "filter"}
        if group == 1:
            w = self.weight(op, f"panels{width}", (outputs // width, *kernel, inputs, width),
                            lambda w: pack_columns(w.reshape(-1, outputs), width).reshape(-1, *kernel, inputs, width))
            return xt.convolution(op.operands[0], w, filter="OHWIo", **rest)

        def pack(w: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
            full = np.pad(w.reshape(window, inputs, outputs), ((0, 0), (0, groups * group - inputs), (0, 0)))
            return pack_columns(full.reshape(-1, outputs), width, group).reshape(-1, *kernel, groups, width, group)

        width = width or self._filled_width(outputs)
        w = self.weight(op, f"panels{width}x{group}", (-(-outputs // width), *kernel, groups, width, group), pack)
        return of_groups(op, w, inputs, outputs)

    def filter(self, op: Operation) -> Value | None:
        """A convolution with a computed filter, which a transpose brings into panels: the one that makes it, where
        there is one, or one more where each element of the filter multiplies enough pixels."""
        a, w = xt.attrs_of(op), op.operands[1]
        inputs, outputs = xt.shape_of(w)[-2:]
        if (a.layout, a.filter, a.groups) != ("NHWC", "HWIO", 1) or not isinstance(outputs, int):
            return None
        group = self.group(op)
        if group > 1:
            return self._grouped_filter(op, inputs, outputs, group) if isinstance(inputs, int) else None
        width = self._filter_width(outputs, 1)
        source, order = before_transpose(w)
        if not width or source == w and nominal_count(xt.shape_of(op.results[0])[:-1], {}) < MANY_ROWS:
            return None
        shape, cut = xt.shape_of(source), order[-1]
        split = xt.reshape(source, shape=(*shape[:cut], outputs // width, width, *shape[cut + 1:]))
        place = [d + (d > cut) for d in order[:-1]]
        return xt.convolution(op.operands[0], xt.transpose(split, perm=(cut, *place, cut + 1)),
                              **(vars(a) | {"filter": "OHWIo"}))

    def _grouped_filter(self, op: Operation, inputs: int, outputs: int, group: int) -> Value:
        """The convolution with its computed filter in panels of groups, filled up with zeros."""
        w = op.operands[1]
        width = self._filter_width(outputs, group) or self._filled_width(outputs)
        depth, panels = (groups_of(inputs, self.to(op)), group), (-(-outputs // width), width)
        return of_groups(op, in_groups(w, range(len(xt.shape_of(w))), 0, depth, panels), inputs, outputs)

    def _filled_width(self, outputs: int) -> int:
        """Columns of a panel where the last one is filled up with zeros."""
        return min((self.width, self.width // 2), key=lambda p: -(-outputs // p) * p)

    def _filter_width(self, outputs: int, group: int) -> int:
        """Columns of a panel of a filter for so many channels; 0 where it stays as it is."""
        half = self.width // 2
        widths = (self.width, self.width + half, half) if group == 1 else (self.width, half) if self.tiles \
            else (self.width, half, half // 2)
        width = next((p for p in widths if outputs % p == 0 and p >= LEAST), 0)
        return 0 if outputs <= width and group == 1 else width
