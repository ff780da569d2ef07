"""Convolutions: an explicit padded producer, then one contraction whose input map is the window (implicit im2col)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xcc._mlir import ir
from xcc.diagnostics import CompilerBug
from xcc.passes.xt_to_linalg.build.builder import Builder
from xcc.passes.xt_to_linalg.build.registry import Op, converts
from xcc.passes.xt_to_linalg.build.types import accumulator
from xcc.passes.xt_to_linalg.build.view import View, dim_expr
from xcc.passes.xt_to_linalg.ops.matmul import contract, finish, panel_coordinates
from xcc.passes.xt_to_linalg.ops.pad import pad_view
from xcc.symbolic import Dim

DEEP = 16  # channels from which on a loop over them is worth being the innermost


def _loop_order(layout: str, n: int, grouped: bool, deep: bool, channels: bool) -> tuple[list[str], list[str]]:
    """Names of the parallel loops in result order, and of the reductions. `deep`: a group has several outputs."""
    out = (["g"] if grouped else []) + (["o"] if deep or not grouped else [])
    space = [f"s{i}" for i in range(n)]
    parallel = {"NCHW": ["n", *out, *space], "NHWC": ["n", *space, *out], "CHWN": [*out, *space, "n"]}[layout]
    return parallel, (["c"] if channels else []) + [f"k{i}" for i in range(n)]


@converts("convolution")
def convert_convolution(b: Builder, op: Op) -> View:
    """Result loops: n, channels (split into group and rest where there are groups, or into blocks), space."""
    x, w = op.operands[0].plain(), op.operands[1].plain()
    n = len(x.dims) - 2
    order, layout, groups = op.attr("layout"), op.attr("filter"), op.attr("groups")
    batch, channel = {"NCHW": (0, 1), "NHWC": (0, n + 1), "CHWN": (n + 1, 0)}[order]
    space = [d for d in range(n + 2) if d not in (batch, channel)]
    x = _pad_input(b, x, space, op)
    strides, dilations = op.attr("strides"), op.attr("rhs_dilation")
    if layout in ("OHWIo", "OHWIoi"):
        return _packed(b, op, x, w, n, strides, dilations)
    places = {"OIHW": (0, 1, range(2, n + 2)), "HWIO": (n + 1, n, range(n)), "OHWI": (0, n + 1, range(1, n + 1)),
              "GIHWO": (n + 1, 0, range(1, n + 1))}
    if layout not in places:
        raise CompilerBug(f"xt.convolution: filter layout '{layout}' has no lowering")
    o_dim, i_dim, k_dims = places[layout]
    own = layout == "GIHWO"         # a group has rows of the filter of its own, not outputs
    grouped = groups != 1
    inputs, per_group = (w.dims[i_dim] // groups, w.dims[o_dim]) if own else (w.dims[i_dim], w.dims[o_dim] // groups)
    parallel, reduction = _loop_order(order, n, grouped, per_group != 1, not (grouped and inputs == 1))
    size: dict[str, Dim] = {"n": x.dims[batch], "g": groups, "o": per_group, "c": inputs}
    size |= {f"s{i}": op.dims[d] for i, d in enumerate(space)} | {f"k{i}": w.dims[d] for i, d in enumerate(k_dims)}
    names = parallel + reduction
    at = {name: dim_expr(i) for i, name in enumerate(names)}
    zero = ir.AffineExpr.get_constant(0)
    g, o, c = (at.get(k, zero) for k in "goc")
    x_coords: list[Any] = [None] * (n + 2)
    x_coords[batch] = at["n"]
    x_coords[channel] = g * _static(inputs, "input channels") + c if grouped else c
    w_coords: list[Any] = [None] * (n + 2)
    w_coords[o_dim] = g * _static(per_group, "output channels") + o if grouped and not own else o
    w_coords[i_dim] = x_coords[channel] if own else c
    for i in range(n):
        x_coords[space[i]] = at[f"s{i}"] * strides[i] + at[f"k{i}"] * dilations[i]
        w_coords[k_dims[i]] = at[f"k{i}"]
    out = contract(b, [size[k] for k in names], len(parallel), [(x, x_coords), (w, w_coords)], op.dtype,
                   op.attr("precision", ""))
    splits = [1] * (n + 2)
    if grouped and per_group != 1:
        splits[channel] = _static(per_group, "output channels")
    return finish(b, View.of_split(out, op.dims, accumulator(op.dtype), splits), op.dtype)


def _packed(b: Builder, op: Op, x: View, w: View, n: int, strides: Sequence[int], dilations: Sequence[int]) -> View:
    """NHWC with the filter in panels of P outputs, [O/P, k..., I, P] or [O/P, k..., I/G, P, G]."""
    if op.attr("layout") != "NHWC" or op.attr("groups") != 1:
        raise CompilerBug("xt.convolution: a packed filter needs layout NHWC and one group")
    grouped = op.attr("filter") == "OHWIoi"
    window, depth, width = list(w.dims[1:n + 1]), w.dims[n + 1], w.dims[n + 2]
    group = list(w.dims[n + 3:])
    deep = grouped or isinstance(depth, int) and depth >= DEEP   # channels innermost: few rows of the image at a time
    loops = [x.dims[0], *op.dims[1:], *([*window, depth] if deep else [depth, *window]), *group]
    d = [dim_expr(i) for i in range(len(loops))]
    space, o, reduced, inner = d[1:n + 1], d[n + 1], d[n + 2:2 * n + 3], d[2 * n + 3:]
    c, k = (reduced[-1], reduced[:-1]) if deep else (reduced[0], reduced[1:])
    channel = c * _static(group[0], "channels in a group") + inner[0] if grouped else c
    x_coords = [d[0], *(s * strides[i] + k[i] * dilations[i] for i, s in enumerate(space)), channel]
    panel, lane = panel_coordinates(o, width)
    out = contract(b, loops, n + 2, [(x, x_coords), (w, [panel, *k, c, lane, *inner])], op.dtype)
    return finish(b, View.of(out, op.dims, accumulator(op.dtype)), op.dtype)


def _pad_input(b: Builder, x: View, space: Sequence[int], op: Op) -> View:
    """The input with the window's padding and the zeros of a transposed convolution."""
    low: list[Dim] = [0] * len(x.dims)
    high: list[Dim] = [0] * len(x.dims)
    interior = [0] * len(x.dims)
    for i, d in enumerate(space):
        low[d], high[d] = op.dims_attr("low")[i], op.dims_attr("high")[i]
        interior[d] = op.attr("lhs_dilation")[i] - 1
    return pad_view(b, x, low, high, interior, 0)


def _static(d: Dim, what: str) -> int:
    if not isinstance(d, int):
        raise CompilerBug(f"xt.convolution: the number of {what} is symbolic ({d})")
    return d
