"""Resizing of images."""

from __future__ import annotations

from typing import Any

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.torch.context import Context, Shape
from xcc.frontends.torch.registry import aten

_MODES = {"linear": "linear", "bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}


def scales_of(cx: Context, shape: Shape, wanted: Shape) -> tuple[float, ...]:
    """Factors from `shape` to `wanted`, an entry a dim; 0 where the sizes decide."""
    if cx.get("align_corners", False) and options_of(cx).get("antialias"):
        return _corner_scales(cx, shape, wanted)
    rank, spatial = len(shape), len(shape) - 2
    given = cx.get("scale_factors")
    if given is None:
        names = ("scales",) if spatial == 1 else ("scales_d", "scales_h", "scales_w")[-spatial:]
        given = tuple(cx.get(n) for n in names)
    if any(isinstance(g, float | int) is False and g is not None for g in given):
        cx.fail("factors that are computed when the model runs are not supported: give sizes")
    own = (0.0,) * spatial if cx.get("align_corners", False) else tuple(float(g or 0.0) for g in given)
    return (1.0,) * (rank - spatial) + own


def _corner_scales(cx: Context, shape: Shape, wanted: Shape) -> tuple[float, ...]:
    """With antialiasing torch takes from `align_corners` how far apart elements are, not where the first one is."""
    out = [1.0, 1.0]
    for size, want in zip(shape[2:], wanted[2:], strict=True):
        if not isinstance(size, int) or not isinstance(want, int):
            cx.fail("antialiasing with align_corners needs sizes that are numbers: export the model with them")
        out.append((want - 1) / (size - 1) if size > 1 else 0.0)
    return tuple(out)


def options_of(cx: Context) -> dict[str, Any]:
    """How the op by its name, or the forward op of a gradient, maps positions and weighs elements.

    Some of torch's kernels copy along a dim whose size stays, whatever the factor (1.2 of 4 are 4), and that of nearest
    images copies each element twice where it doubles.
    """
    name = cx.node.op.split(".")[1].removesuffix("_backward").removeprefix("_").removeprefix("upsample_")
    if name.startswith("nearest_exact"):
        return {"mode": "nearest", "coordinate": "half_pixel", "nearest_mode": "round_prefer_ceil"}
    if name.startswith("nearest"):
        return {"mode": "nearest", "coordinate": "asymmetric", "nearest_mode": "floor",
                "multiples": 2 if name.startswith("nearest2d") else 0}
    antialias = name.endswith("_aa")
    mode = _MODES[name.removesuffix("_aa")[:-2]]
    return {"mode": mode, "multiples": 1 if antialias or mode == "linear" else 0,
            "coordinate": "align_corners" if cx["align_corners"] and not antialias else "half_pixel",
            "antialias": antialias, "exclude_outside": antialias, "cubic_coeff": -0.5 if antialias else -0.75}


@aten(*(f"{kind}.{form}" for form in ("default", "vec") for kind in (
    *(f"{name}{n}d" for n in (1, 2, 3) for name in ("upsample_nearest", "_upsample_nearest_exact")),
    "upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d",
    "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa")))
def resize(cx: Context) -> Value:
    """Nearest, linear and cubic, with antialiasing where the op's name ends in aa."""
    x, shape = cx.tensor("input" if "input" in cx.args else "self"), cx.out().shape
    return xt.resize_(x, shape=shape, scales=scales_of(cx, tuple(xt.shape_of(x)), shape), **options_of(cx))
