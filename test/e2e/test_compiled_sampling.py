"""Resize, sampling at positions that are data, pooling with indices, Fourier transforms, compiled for the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import small_graphs
from compiled import FLOATS, SMALL, arrays, check, examples, filled, shapes
from hypothesis import assume, given
from hypothesis import strategies as st

from xcc.dialects import xt
from xcc.dialects.xt.resize import COORDINATES, NEAREST

F32 = np.dtype(np.float32)
FEW = st.sampled_from([1, 1, 2, 3, 5, 8])


@given(st.data())
@examples(24)
def test_resize(data: Any) -> None:
    """Each mode with each way to place samples, growing and shrinking, to one element and to none."""
    rank = data.draw(st.integers(1, 4))
    x = filled([data.draw(FEW) for _ in range(rank)],
               data.draw(st.sampled_from([*FLOATS, np.dtype(np.uint8), np.dtype(np.int8), np.dtype(np.int32)])))
    mode = data.draw(st.sampled_from(["nearest", "linear", "linear", "cubic"]))
    options: dict[str, Any] = {"mode": mode, "coordinate": data.draw(st.sampled_from(COORDINATES))}
    shape = [n if data.draw(st.integers(0, 2)) == 0 else data.draw(st.sampled_from([0, 1, 2, 3, 7, 13]))
             for n in x.shape]
    if mode == "nearest":
        options["nearest_mode"] = data.draw(st.sampled_from(NEAREST))
    else:
        options["antialias"] = data.draw(st.booleans())
        options["exclude_outside"] = data.draw(st.booleans())
    if options["coordinate"] == "tf_crop_and_resize":
        options["roi"] = [*(data.draw(st.sampled_from([0.0, 0.2])) for _ in x.shape),
                          *(data.draw(st.sampled_from([1.0, 0.75, 1.3])) for _ in x.shape)]
        options["extrapolation"] = 2.5
    if x.dtype.kind in "iu" and mode != "nearest":
        x = (x % 3 * 64 - 64 * (x.dtype.kind == "i")).astype(x.dtype)      # sums of them never end in one half
    check(lambda v: xt.resize(v, shape=shape, **options), x, tolerance=4)


@given(st.data())
@examples(10)
def test_grid_sample(data: Any) -> None:
    rank = data.draw(st.integers(1, 3))
    x = filled([data.draw(FEW) for _ in range(2 + rank)], F32)
    grid = filled([x.shape[0], *(data.draw(FEW) for _ in range(rank)), rank], F32, 1, -1.4, 1.4)
    options = {"mode": data.draw(st.sampled_from(["nearest", "linear", "cubic"])),
               "padding": data.draw(st.sampled_from(["zeros", "border", "reflection"])),
               "align_corners": data.draw(st.booleans())}
    check(lambda v, g: xt.grid_sample(v, g, **options), x, grid, tolerance=4)


@given(st.data())
@examples(8)
def test_roi_align(data: Any) -> None:
    x = filled([data.draw(FEW), data.draw(st.sampled_from([1, 3, 259])), 7, 9], F32)
    count = data.draw(st.sampled_from([0, 1, 3]))
    corner, extent = filled((count, 2), F32, 1, -1, 4), filled((count, 2), F32, 2, 0.3, 5)
    batch = np.random.default_rng(3).integers(0, x.shape[0], count)
    options = {"size": [data.draw(FEW), data.draw(FEW)], "samples": data.draw(st.integers(0, 3)),
               "spatial_scale": data.draw(st.sampled_from([1.0, 0.5])),
               "mode": data.draw(st.sampled_from(["avg", "max"])), "half_pixel": data.draw(st.booleans())}
    check(lambda *v: xt.roi_align(*v, **options), x, np.concatenate([corner, corner + extent], 1), batch, tolerance=4)


@given(st.data())
@examples(6)
def test_deform_conv(data: Any) -> None:
    groups, offset_groups = data.draw(st.sampled_from([1, 2])), data.draw(st.sampled_from([1, 2]))
    batch, channels, outs = data.draw(FEW), 2 * data.draw(st.integers(1, 2)), 2 * data.draw(st.integers(1, 2))
    kernel, low, high = ([data.draw(st.integers(a, b)) for _ in range(2)] for a, b in ((1, 3), (0, 1), (0, 1)))
    strides = [data.draw(st.integers(1, 2)) for _ in range(2)]
    size = [(n + lo + hi - k) // s + 1 for n, k, lo, hi, s in zip((6, 5), kernel, low, high, strides, strict=True)]
    taps = offset_groups * kernel[0] * kernel[1]
    inputs = [filled((batch, channels, 6, 5), F32), filled((outs, channels // groups, *kernel), F32, 1, -1, 1),
              filled((batch, 2 * taps, *size), F32, 2, -1.7, 1.7)]
    rest = [filled((outs,), F32, 3), filled((batch, taps, *size), F32, 4, 0, 1)]
    kept = [v if data.draw(st.booleans()) else None for v in rest]

    def body(x: Any, w: Any, offset: Any, *present: Any) -> Any:
        left = iter(present)
        return xt.deform_conv(x, w, offset, *(None if v is None else next(left) for v in kept), strides=strides,
                              low=low, high=high, groups=groups, offset_groups=offset_groups)

    check(body, *inputs, *(v for v in kept if v is not None), tolerance=4)


@given(st.data())
@examples(8)
def test_col2im(data: Any) -> None:
    spatial = data.draw(st.integers(1, 3))
    def pick(low: int, high: int) -> list[int]:
        return [data.draw(st.integers(low, high)) for _ in range(spatial)]
    image, block, strides, dilations, low, high = (pick(*r) for r in ((4, 7), (1, 3), (1, 3), (1, 2), (0, 1), (0, 1)))
    outs = [(n + lo + hi - (k - 1) * d - 1) // s + 1
            for n, k, s, d, lo, hi in zip(image, block, strides, dilations, low, high, strict=True)]
    assume(min(outs) > 0)
    channels = data.draw(st.integers(1, 3))
    x = filled((data.draw(FEW), channels * int(np.prod(block)), int(np.prod(outs))), data.draw(st.sampled_from(FLOATS)))
    check(lambda v: xt.col2im(v, image=image, block=block, strides=strides, low=low, high=high, dilations=dilations), x,
          tolerance=4)


@given(st.data())
@examples(10)
def test_max_pool_with_indices(data: Any) -> None:
    spatial = data.draw(st.integers(1, 3))
    def pick(low: int, high: int) -> list[int]:
        return [data.draw(st.integers(low, high)) for _ in range(spatial)]
    window, strides, dilations, low, high = (pick(*r) for r in ((1, 3), (1, 3), (1, 2), (0, 1), (0, 1)))
    low, high = ([min(p, w - 1) for p, w in zip(side, window, strict=True)] for side in (low, high))
    size = [max(n, (w - 1) * d + 1) for n, w, d in zip(pick(2, 7), window, dilations, strict=True)]
    dtype = data.draw(st.sampled_from([*FLOATS, np.dtype(np.int8), np.dtype(np.uint8)]))
    x = filled([data.draw(st.integers(0, 2)), data.draw(st.integers(1, 3)), *size], dtype)
    order = data.draw(st.integers(0, 1))
    check(lambda v: xt.max_pool_with_indices(v, window=window, strides=strides, low=low, high=high,
                                             dilations=dilations, storage_order=order), x)


@given(st.data())
@examples(12)
def test_dft(data: Any) -> None:
    """Along any axis, of lengths that butterflies take and others, known and free."""
    kind = data.draw(st.sampled_from(["", "inverse", "onesided", "real inverse"]))
    parts = 2 if kind == "real inverse" else data.draw(st.integers(1, 2))
    sizes = st.sampled_from([1, 2, 3, 7, 16, 33, 34, 49, 60, 91])
    shape = [*data.draw(shapes((1, 3), sizes, 1 << 10)), 1]
    last = len(shape) - 1
    axis, odd = data.draw(st.integers(0, last - 1)), data.draw(st.integers(0, 1))
    x = filled(shape, data.draw(st.sampled_from([F32, np.dtype(np.float64)])))

    def body(v: Any) -> Any:
        real = {"length": (2 * (xt.shape_of(v)[axis] - 1) + odd or 1,)} if kind == "real inverse" else {}
        v = xt.concatenate(v, xt.sin(v), axis=last) if parts == 2 else v
        return xt.dft(v, axis=axis, inverse="inverse" in kind, onesided=bool(real) or kind == "onesided", **real)

    check(body, x, dynamic=data.draw(st.booleans()), tolerance=16)


@given(st.data())
@examples(12)
def test_pad_modes(data: Any) -> None:
    x = data.draw(arrays(shapes((1, 4), SMALL.filter(bool), 1 << 10), [*FLOATS, np.dtype(np.int32), np.dtype(bool)]))
    mode = data.draw(st.sampled_from(["constant", "edge", "reflect", "wrap"]))
    def pads() -> list[int]:
        top = [n - 1 if mode == "reflect" else n + 2 for n in x.shape]
        return [data.draw(st.integers(-1 if mode == "constant" else 0, max(t, 0))) for t in top]
    low, high = pads(), pads()
    low, high = ([max(p, -(n // 2)) for p, n in zip(side, x.shape, strict=True)] for side in (low, high))
    check(lambda v: xt.pad(v, low=low, high=high, mode=mode, value=1.0), x)


def test_grid_sample_of_a_free_batch() -> None:
    """Positions in an image of known size count in 32 bits, also where they lie far outside."""
    x, grid = small_graphs.numbers(3, 5, 6, 9), 3 * small_graphs.numbers(3, 4, 9, 2)
    grid[1, 2, 3], grid[2, 0, 0] = (3e5, -3e5), (-2e4, 0.5)
    for mode in ("linear", "nearest"):
        nodes = [small_graphs.node("GridSample", "x g", "y", mode=mode)]
        small_graphs.check(nodes, {"x": x, "g": grid}, "y", dims={"x": ["n", 5, 6, 9], "g": ["n", 4, 9, 2]})


def test_pads_of_one_element_that_are_cut_off() -> None:
    """No dim is left to walk along: what is read lies inside or not."""
    for at in (0, 1):
        def body(v: Any, of: Any, at: int = at) -> Any:
            padded = xt.reshape(xt.pad(v, low=(0, 0), high=(1, 1), value=2.0), shape=(1, 2, 2))
            return xt.slice(xt.sub(of, padded), starts=(0, at, 0), limits=(1, at + 1, 1))

        check(body, filled((1, 1), "f4"), filled((2, 2), "f4", 1))
