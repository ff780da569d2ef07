"""Conversions of what moves, gathers, sorts, selects and samples elements, against the ops' numpy definitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from linalg_cases import RNG, check, floats, ints, run_sized

from xcc.dialects import xt

MOVEMENT: dict[str, Callable[[Any], Any]] = {
    "transpose": lambda x: xt.transpose(x, perm=(2, 0, 1)),
    "broadcast": lambda x: xt.broadcast(x, shape=(2, 3, 4, 5)),
    "slice": lambda x: xt.slice(x, starts=(1, 0, 2), limits=(3, 4, 5), strides=(1, 2, 2)),
    "reverse": lambda x: xt.reverse(x, axes=(0, 2)),
    "pad": lambda x: xt.pad(x, low=(1, 0, 2), high=(0, 3, 1), value=1.5),
    "crop": lambda x: xt.pad(x, low=(-1, 0, 2), high=(0, -1, -1), value=1.5),
    "interior": lambda x: xt.pad(x, low=(1, 0, 0), high=(0, 0, 2), interior=(1, 2, 0), value=1.5),
    "edge": lambda x: xt.pad(x, low=(1, 0, 2), high=(0, 3, 1), mode="edge"),
    "reflect": lambda x: xt.pad(x, low=(1, 0, 7), high=(0, 3, 9), mode="reflect"),
    "wrap": lambda x: xt.pad(x, low=(1, 0, 7), high=(0, 3, 9), mode="wrap"),
    "reflect once": lambda x: xt.pad(x, low=(2, 0, 4), high=(1, 3, 1), mode="reflect"),
    "wrap once": lambda x: xt.pad(x, low=(2, 0, 4), high=(1, 3, 3), mode="wrap"),
    "reshape unit": lambda x: xt.reshape(x, shape=(3, 1, 4, 5, 1)),
    "reshape merge": lambda x: xt.exp(xt.reshape(x, shape=(12, 5))),
    "reshape split": lambda x: xt.exp(xt.reshape(x, shape=(3, 2, 2, 5))),
    "reshape across": lambda x: xt.exp(xt.reshape(x, shape=(10, 6))),
    "concatenate": lambda x: xt.concatenate(x, xt.exp(x), x, axis=1),
}


@pytest.mark.parametrize("name", MOVEMENT)
def test_movement(name: str) -> None:
    x = floats(3, 4, 5)
    check(MOVEMENT[name], x, dynamic=False)
    check(lambda v: xt.neg(MOVEMENT[name](xt.neg(v))), x, dynamic=False)


def test_movement_of_symbolic_dims() -> None:
    x = floats(3, 4, 5)
    check(lambda v: xt.reverse(v, axes=(0, 2)), x)
    check(lambda v: xt.concatenate(v, v, axis=0), x)
    check(lambda v: xt.pad(v, low=(1, 0, 2), high=(0, 3, 1), value=1.5), x)
    check(lambda v: xt.pad(v, low=(1, 0, 2), high=(0, 3, 1), mode="reflect"), x)
    check(lambda v: xt.slice(xt.exp(v), starts=(0, 0, 0), limits=(2, 4, 5)), x, dynamic=False)
    check(lambda v: xt.slice(xt.exp(v), starts=(0, 0, 0), limits=(*xt.shape_of(v)[:2], xt.shape_of(v)[2] - 1)), x)
    check(lambda v: xt.slice(v, starts=(xt.shape_of(v)[0] - 2, 0, 1), limits=xt.shape_of(v)), x)


def test_iota() -> None:
    check(lambda x: xt.add(x, xt.iota(shape=(3, 4), axis=1, dtype="f32")), floats(3, 4), dynamic=False)


def test_gathers() -> None:
    x, at = floats(4, 5, 3), ints(2, 3, low=-4, high=4, dtype=np.int64)
    check(lambda v, i: xt.gather(v, i, axis=1), x, at)
    check(lambda v, i: xt.gather(xt.transpose(xt.slice(v, starts=(1, 1, 0), limits=(3, 5, 3)), perm=(2, 1, 0)), i),
          x, at, dynamic=False)
    check(lambda v, i: xt.gather(v, i), x, np.array([-9, 9, 0], np.int32))
    check(lambda v, i: xt.gather(v, i, axis=2, batch_dims=1), x, ints(4, 2, low=-3, high=3, dtype=np.int64))
    check(lambda v, i: xt.gather_nd(v, i), x, ints(6, 2, low=-4, high=4, dtype=np.int64), dynamic=False)
    check(lambda v, i: xt.gather_nd(v, i, batch_dims=1), x, ints(4, 1, low=-4, high=4, dtype=np.int64), dynamic=False)
    check(lambda v, i: xt.gather_elements(v, i, axis=1), x, ints(4, 2, 3, low=-4, high=4, dtype=np.int64))


def test_dynamic_slices() -> None:
    x, at = floats(4, 5), [np.array(v, np.int64) for v in (1, 9)]
    check(lambda v, i, j: xt.dynamic_slice(v, i, j, sizes=(2, 3)), x, *at)
    check(lambda v, u, i, j: xt.dynamic_update_slice(v, u, i, j), x, floats(2, 3), *at)


FLAGS = [(False, False), (True, True), (True, False), (False, True)]


@pytest.mark.parametrize(("kind", "flags"), [
    *(("sum", flags) for flags in FLAGS), *(("prod", flags) for flags in FLAGS[2:]),
    *(("max", flags) for flags in FLAGS[:2]), *(("min", flags) for flags in FLAGS[2:]),
    *(("logsumexp", flags) for flags in FLAGS[:2])])
def test_cumulative(kind: str, flags: Any) -> None:
    for shape in ((3, 7, 2), (2, 5, 3, 100)):       # more neighbours than are scanned together
        check(lambda x: xt.cumulative(x, kind=kind, axis=1, exclusive=flags[0], reverse=flags[1]), floats(*shape),
              rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
@pytest.mark.parametrize("kind", ["max", "min"])
def test_running_extremes_of_rows(kind: str, dtype: Any) -> None:
    """Several rows at a time; behind a NaN all is NaN."""
    x = floats(70, 12, dtype=dtype)
    x[3, 5], x[7, 0], x[9, 11], x[20, 2], x[30, 4], x[40] = np.nan, -np.nan, np.nan, np.inf, -np.inf, -np.inf
    for exclusive, reverse in FLAGS:
        check(lambda v, e=exclusive, r=reverse: xt.cumulative(v, kind=kind, axis=1, exclusive=e, reverse=r), x)


@pytest.mark.parametrize("descending", [False, True])
def test_sort(descending: bool) -> None:
    x = np.array([[3, 1, np.nan, 2, 1], [5, 4, 3, 2, 1], [0, np.inf, -np.inf, np.nan, 0]], np.float32)
    check(lambda v: xt.sort(v, axis=1, descending=descending), x)
    check(lambda v: xt.sort(v, axis=0, descending=descending), ints(7, 2, low=0, high=3))
    check(lambda v: xt.sort(v, axis=0, descending=descending), ints(13, dtype=np.uint8))


@pytest.mark.parametrize("largest", [False, True])
def test_top_k(largest: bool) -> None:
    x = ints(3, 17, low=0, high=6).astype(np.float32)
    x[1, 3] = np.nan
    for k in (1, 5, 17, 0):
        check(lambda v, k=k: xt.top_k(v, k=k, axis=1, largest=largest), x, dynamic=False)
    check(lambda v: xt.top_k(v, k=2, axis=0, largest=largest), ints(9, 2))


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_scatter(reduction: str) -> None:
    x = floats(4, 5)
    check(lambda v, i, u: xt.scatter_elements(v, i, u, axis=1, reduction=reduction), x,
          ints(3, 6, low=-5, high=5, dtype=np.int64), floats(3, 6), rtol=1e-5)
    check(lambda v, i, u: xt.scatter_nd(v, i, u, reduction=reduction), x, ints(6, 1, low=-4, high=4, dtype=np.int64),
          floats(6, 5), rtol=1e-5, dynamic=False)
    check(lambda v, i, u: xt.scatter_nd(v, i, u, reduction=reduction), x, ints(6, 2, low=-4, high=4, dtype=np.int64),
          floats(6), rtol=1e-5, dynamic=False)


@pytest.mark.parametrize("storage_order", [0, 1])
def test_max_pool_with_indices(storage_order: int) -> None:
    x = ints(2, 1, 5, 6, low=0, high=4).astype(np.float32)
    check(lambda v: xt.max_pool_with_indices(v, window=(3, 2), strides=(2, 1), low=(1, 0), high=(1, 1),
                                             storage_order=storage_order), x)


def test_nonzero() -> None:
    run_sized(lambda x: xt.nonzero(x, symbol="n"), ints(3, 4, low=0, high=2))
    run_sized(lambda x: xt.nonzero(x, symbol="n"), RNG.random((2, 3, 2)) < 0.5)
    run_sized(lambda x: xt.nonzero(x, symbol="n"), np.zeros((3, 1), np.float32))


@pytest.mark.parametrize("axis", [0, 1])
def test_compress(axis: int) -> None:
    chosen = np.array([True, False, True])
    run_sized(lambda x, c: xt.compress(x, c, symbol="n", axis=axis), floats(3, 4), chosen)
    run_sized(lambda x, c: xt.compress(x, c, symbol="n", flat=True), floats(3, 4), chosen)


@pytest.mark.parametrize("ordered", [False, True])
def test_unique(ordered: bool) -> None:
    run_sized(lambda x: xt.unique(x, symbol="n", sorted=ordered), ints(4, 5, low=0, high=6))
    run_sized(lambda x: xt.unique(x, symbol="n", sorted=ordered), np.array([2, np.nan, 1, np.nan, 2], np.float32))
    for axis in (0, 1):
        x = ints(6, 6, low=0, high=2)
        x[3], x[:, 4] = x[0], x[:, 1]
        run_sized(lambda v, a=axis: xt.unique(v, symbol="n", flat=False, axis=a, sorted=ordered), x)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [False, True])
def test_grid_sample(mode: str, padding: str, align: bool) -> None:
    grid = (RNG.random((2, 3, 4, 2)) * 3 - 1.5).astype(np.float32)
    check(lambda x, g: xt.grid_sample(x, g, mode=mode, padding=padding, align_corners=align), floats(2, 3, 5, 6), grid,
          dynamic=False, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"mode": "max"}, {"samples": 2}, {"half_pixel": False, "spatial_scale": 0.5}])
def test_roi_align(options: Any) -> None:
    rois = np.array([[0, 0, 7, 5], [1, 2, 3.5, 9], [-3, 1, 12, 4]], np.float32)
    check(lambda x, r, b: xt.roi_align(x, r, b, size=(2, 3), **options), floats(2, 3, 6, 8), rois,
          np.array([0, 1, 1], np.int64), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["avg", "max"])
def test_roi_align_of_boxes_far_larger_than_the_image(mode: str) -> None:
    """Of the samples of a cell, as many as it spans elements, only those in the image are read: it ends."""
    rois = np.array([[0, 0, 2e6, 5], [-2e4, -2e4, 2e4, 2e4], [0, 0, 1e9, 1e9], [0, 0, np.inf, 5], [np.nan] * 4,
                     [5, 5, -1e9, -1e9]], np.float32)
    check(lambda x, r, b: xt.roi_align(x, r, b, size=(1, 2), mode=mode), floats(1, 2, 6, 8), rois,
          np.zeros(len(rois), np.int64), dynamic=False, rtol=1e-4, atol=1e-5)


def test_sizes_are_scalars() -> None:
    check(lambda x: xt.add(x, xt.convert(xt.dim(value=xt.shape_of(x)[0] * 2), dtype="f32")), floats(3, 5))
