"""Resizing of images."""

from __future__ import annotations

from typing import Any

from xcc.dialects import xt
from xcc.frontends.torch.context import Context
from xcc.frontends.torch.registry import aten

_MODES = {"linear": "linear", "bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}
_NEAREST = {"upsample_nearest": {"coordinate": "asymmetric", "nearest_mode": "floor"},
            "_upsample_nearest_exact": {"coordinate": "half_pixel", "nearest_mode": "round_prefer_ceil"}}


def _scales(cx: Context, rank: int, spatial: int) -> tuple[float, ...]:
    """Factors given as numbers, an entry a dim; 0 where the sizes decide."""
    given = cx.get("scale_factors")
    if given is None:
        names = ("scales",) if spatial == 1 else ("scales_d", "scales_h", "scales_w")[-spatial:]
        given = tuple(cx.get(n) for n in names)
    if any(isinstance(g, float | int) is False and g is not None for g in given):
        cx.fail("factors that are computed when the model runs are not supported: give sizes")
    return (1.0,) * (rank - spatial) + tuple(float(g or 0.0) for g in given)


def resized(cx: Context, x: Any, options: dict[str, Any]) -> Any:
    shape = cx.out().shape
    spatial = len(shape) - 2
    scales = _scales(cx, len(shape), spatial)
    if options.get("coordinate") == "align_corners":
        scales = (0.0,) * len(shape)
    return xt.resize_(x, shape=shape, scales=scales, **options)


def _upsample(name: str) -> Any:
    def nearest(cx: Context) -> Any:
        return resized(cx, _image(cx), {"mode": "nearest", **_NEAREST[name]})

    return nearest


def _image(cx: Context) -> Any:
    return cx.tensor("input" if "input" in cx.args else "self")


for _name in _NEAREST:
    for _n in (1, 2, 3):
        aten(f"{_name}{_n}d.default", f"{_name}{_n}d.vec")(_upsample(_name))


@aten(*(f"upsample_{mode}.{form}" for mode in ("linear1d", "bilinear2d", "trilinear3d", "bicubic2d")
        for form in ("default", "vec")),
      *(f"_upsample_{mode}2d_aa.{form}" for mode in ("bilinear", "bicubic") for form in ("default", "vec")))
def interpolate(cx: Context) -> Any:
    """Linear and cubic, with antialiasing where the op's name ends in aa."""
    name = cx.node.op.split(".")[1]
    antialias = name.endswith("_aa")
    kind = name.removeprefix("_").removeprefix("upsample_").removesuffix("_aa")[:-2]
    options = {"mode": _MODES[kind], "coordinate": "align_corners" if cx["align_corners"] else "half_pixel",
               "antialias": antialias, "exclude_outside": antialias,
               "cubic_coeff": -0.5 if antialias else -0.75}
    return resized(cx, _image(cx), options)
