"""3x3 convolutions with stride 1 in Winograd's form, where that is estimated to take less time.

A tile of m x m results needs (m + 2)^2 multiplications for each pair of channels in place of 9 m^2: 2.25 times fewer
with m = 2, 4 times fewer with m = 4. What that costs: the transforms at both ends, and a filter with (m + 2)^2 / 9
times as many elements, which has to come from memory and stays there: a model's filters may grow by so many bytes
together, which go to the convolutions that save most for each. See docs/winograd.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from xcc._mlir import Module, Operation, Value, ir, owner_op
from xcc.dialects import xt
from xcc.dialects.xt.winograd import POINTS, WINDOW, covered, winograd_matrices
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.graph.match import NoMatch, no_match
from xcc.passes.xt.graph.rewrite import at, name_of, producer, replace, walk_ops
from xcc.passes.xt.products.panels import pack_columns, panel_width
from xcc.targets.base import Chip
from xcc.weights import WeightStore


@dataclass(frozen=True)
class Shape:
    """A convolution: images, size of the result, channels in and out, and outputs in a panel of the filter."""

    images: int
    height: int
    width: int
    inputs: int
    outputs: int
    panel: int


@dataclass(frozen=True)
class Chunks:
    """What a core takes at a time: rows of tiles of one image, and outputs.

    seconds: estimated, of the convolution; busy: what of it the cores do not wait for memory.
    """

    rows: int
    outputs: int
    seconds: float
    busy: float


@dataclass(frozen=True)
class Form:
    """One way to compute a convolution: in tiles of `tile` x `tile` results (0: as it is), the seconds it is estimated
    to take, the bytes that its filter has more."""

    tile: int
    seconds: float
    added: int


@register_pass
class Winograd(Pass):
    """Rewrites NHWC convolutions of f32 with a weight as filter.

    Before: ``convolution(x, w) {filter = "HWIO", low = [1, 1], high = [1, 1]}``, w: [3, 3, C, K]
    After:  ``winograd_convolution(pad(x), dot_general(G, w'))``, w': [9, K / P * C * P], G w': [t, t, K / P, C, P]

    tile: 2 or 4, m of the tiles that every such convolution gets; 0: what is estimated to be fastest, or none.
    added: bytes by which all filters together may grow where the tile is chosen. They grow when the model is loaded.
    """

    tile: int = 0
    added: int = 8 << 20

    def run(self, module: Module, ctx: PassContext) -> None:
        if ctx.options is not None and not ctx.options.winograd:
            return
        found = []
        for op in [op for op in walk_ops(module) if name_of(op) == "convolution"]:
            fault = _misfit(op)
            if fault is None:
                found.append((op, _shape(op, ctx.chip)))
            else:
                _tell(ctx, fault)
        if self.tile:
            tiles = [self.tile if best_chunks(s, self.tile, ctx.chip) is not None else 0 for _, s in found]
        else:
            tiles = affordable([_forms(s, ctx.chip) for _, s in found], self.added)
        for (op, shape), tile in zip(found, tiles, strict=True):
            if tile:
                with at(op):
                    replace(op, [_tiled(op, tile, shape.panel, ctx.weights)])
            else:
                times = ", ".join(f"tiles of {f.tile} {f.seconds * 1e6:.0f} us" for f in _forms(shape, ctx.chip))
                _tell(ctx, no_match(op, f"{times}: others save more for the bytes of their filters"))


def _tell(ctx: PassContext, fault: NoMatch) -> None:
    if getattr(ctx.options, "debug_patterns", False):
        ctx.verbose(f"no match: {fault.op}: {fault.why}")


def affordable(forms: list[list[Form]], limit: int) -> list[int]:
    """The tile of each convolution, of its `forms` (the first is as it is): those that save most time for each byte
    that their filters have more, as long as all filters together have no more than `limit` bytes more."""
    chosen = [f[0] for f in forms]
    while True:
        left = limit - sum(f.added for f in chosen)
        steps = [((now.seconds - f.seconds) / max(1, f.added - now.added), -n, f) for n, now in enumerate(chosen)
                 for f in forms[n] if f.seconds < now.seconds and f.added - now.added <= left]
        if not steps:
            return [f.tile for f in chosen]
        _, before, form = max(steps, key=lambda step: step[:2])
        chosen[-before] = form


def _shape(op: Operation, chip: Chip) -> Shape:
    n, *image, _ = xt.shape_of(op.results[0])
    height, width = (d if isinstance(d, int) else ASSUMED for d in image)
    inputs, outputs = (d for d in xt.shape_of(op.operands[1])[2:] if isinstance(d, int))
    panel = panel_width(outputs, 2 * chip.vector_bytes // 4)
    return Shape(n if isinstance(n, int) else 1, height, width, inputs, outputs, panel)


def _forms(s: Shape, chip: Chip) -> list[Form]:
    """As it is, then in tiles where that is clearly faster."""
    elements = 4 * s.inputs * -(-s.outputs // s.panel) * s.panel
    direct = direct_seconds(s, chip)
    tiled = [Form(m, best.seconds, elements * ((m + WINDOW - 1) ** 2 - WINDOW ** 2))
             for m in POINTS if (best := best_chunks(s, m, chip)) is not None]
    return [Form(0, direct, 0), *(f for f in tiled if direct >= f.seconds * MARGIN)]


def _misfit(op: Operation) -> NoMatch | None:
    """Why `op` has no Winograd form."""
    a, (x, w) = xt.attrs_of(op), op.operands
    if (a.layout, a.filter, a.groups) != ("NHWC", "HWIO", 1) or xt.shape_of(w)[:-2] != (WINDOW, WINDOW):
        return no_match(op, "it is no 3x3 convolution of one group with channels last")
    if any(v != 1 for v in (*a.strides, *a.lhs_dilation, *a.rhs_dilation)):
        return no_match(op, "it has strides or dilations")
    if {xt.TensorType.of(v).dtype for v in (x, w)} | {a.dtype} != {"f32"}:
        return no_match(op, "it is not in f32")
    if producer(w, "weight") is None:
        return no_match(op, "its filter is no weight")
    shape = xt.shape_of(op.results[0])
    if not all(isinstance(d, int) for d in (shape[-1], *a.low, *a.high)) or min(*a.low, *a.high) < 0 or 0 in shape:
        return no_match(op, "its padding is not known, or it is cropped")
    return None


ASSUMED = 64           # pixels of an image whose size is not known
EFFICIENCY = 0.85      # of the peak rate that products reach
MARGIN = 1.1           # how much faster the form has to be to be taken
SUMS = {2: (8 * 4, 6 * 4 + 6 * 2), 4: (26 * 6 * 2, 18 * 6 + 18 * 4)}
"""Additions and multiplications of a tile's transforms, for each channel in and each out."""
NEAR, FAR = 0.3, 0.12  # bytes a second from the L2 and the L3 cache, for each operation a second at the peak rate


def direct_seconds(s: Shape, chip: Chip) -> float:
    """Estimated, of the convolution as it is; weights come from memory, as those of a model with many layers do."""
    products = 2 * WINDOW ** 2 * s.images * s.height * s.width * s.inputs * s.outputs
    rate = EFFICIENCY * dict(chip.flops)["f32"] * chip.cores
    return max(products / rate, 4 * WINDOW ** 2 * s.inputs * s.outputs / chip.bandwidth)


def best_chunks(s: Shape, tile: int, chip: Chip) -> Chunks | None:
    """The chunks that are estimated to be fastest; None where a row of tiles holds more than a thread may."""
    return min(_chunks(s, tile, chip), key=lambda c: (c.seconds, c.busy), default=None)


def _chunks(s: Shape, tile: int, chip: Chip) -> Iterator[Chunks]:
    cores, rate = chip.cores, dict(chip.flops)["f32"]
    elements = (tile + WINDOW - 1) ** 2
    down, across = -(-s.height // tile), -(-s.width // tile)
    panels = -(-s.outputs // s.panel)
    weights = 4 * elements * s.inputs * panels * s.panel
    into, out = SUMS[tile]
    for share in sorted({-(-panels // n) for n in range(1, panels + 1)}):
        outputs = min(share * s.panel, s.outputs)
        for rows in range(1, down + 1):
            tiles, held = rows * across, 4 * elements * rows * across * (s.inputs + outputs)
            if held > MOST_HELD:
                break
            kept = NEAR if held <= chip.l2_bytes * 3 // 4 else FAR
            read = 4 * elements * s.inputs * outputs
            near = NEAR if read <= chip.l2_bytes // 2 and rows < down else FAR
            seconds = 2 * (into * s.inputs + out * outputs) * tiles / rate + 2 * held / (kept * rate)
            seconds += max(2 * elements * tiles * s.inputs * outputs / (EFFICIENCY * rate), read / (near * rate))
            turns = -(-s.images * -(-down // rows) * -(-panels // share) // cores)
            yield Chunks(rows, outputs, max(seconds * turns, weights / chip.bandwidth), seconds * turns)


MOST_HELD = 2 << 20    # bytes of patches and products on a thread's stack


def _tiled(op: Operation, tile: int, width: int, weights: WeightStore | None) -> Value:
    """The convolution `op` in tiles of `tile` x `tile` results."""
    a, (x, w) = xt.attrs_of(op), op.operands
    _, *spatial, outputs = xt.shape_of(op.results[0])
    inputs, size = xt.shape_of(w)[2], tile + WINDOW - 1
    high = tuple(h + covered(d, tile) for h, d in zip(a.high, spatial, strict=True))
    if any((*a.low, *high)):
        x = xt.pad(x, low=(0, *a.low, 0), high=(0, *high, 0))
        owner_op(x).attributes["xcc.stored"] = ir.UnitAttr.get()
    name = xt.attrs_of(owner_op(w)).name
    key, panels = f"{name}.taps{width}", -(-outputs // width)
    if weights is not None:
        key = weights.add(key, lambda: taps(weights[name], width))
    matrix = xt.constant(filter_matrix(tile))
    filters = xt.dot_general(matrix, xt.weight(key, (WINDOW ** 2, panels * inputs * width), "f32"),
                             lhs_contract=(1,), rhs_contract=(0,), dtype="f32")
    filters = xt.reshape(filters, shape=(size, size, panels, inputs, width))
    return xt.winograd_convolution(x, filters, outputs=outputs, tile=tile, spatial=tuple(spatial))


def taps(w: np.ndarray[Any, Any], width: int) -> np.ndarray[Any, Any]:
    """A filter [3, 3, C, K] as [9, K / P * C * P]: the matrix [C, K] of each place in panels of P = `width` columns."""
    return np.stack([pack_columns(m, width).reshape(-1) for m in w.reshape(-1, *w.shape[2:])])


def filter_matrix(tile: int) -> np.ndarray[Any, Any]:
    """What makes of a filter's 9 places those of its transform, G w G': [t * t, 9] in f32."""
    g = winograd_matrices(tile)[1]
    return np.kron(g, g).astype(np.float32)
