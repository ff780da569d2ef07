"""Ops of all families on sizes that may be 0: one compilation serves 0, 1, 2, 5 and 9, with bounds that say so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compiled import behind_poison, compare, compiled, filled, module_of, on_chip

from xcc._mlir import ir
from xcc.diagnostics import UserError
from xcc.dialects import xt
from xcc.dialects.xt.interpret import interpret
from xcc.symbolic import Dim, evaluate, sym

N, M = sym("n"), sym("m")
SIZES = ((0, 0), (0, 5), (9, 0), (1, 1), (2, 9), (5, 2), (0, 1))
LARGEST = 64


def t(*shape: Dim, dtype: str = "f32") -> Any:
    return xt.TensorType(shape, dtype)


def zero() -> Any:
    return xt.constant(0, dtype="i64")


def number(value: float) -> Any:
    return xt.scalar(value, "f32")


def sums(x: Any) -> Any:
    kinds = ("sum", "prod", "max", "min")
    return tuple(xt.reduce(x, kind=k, axes=a, keepdims=len(k) == 3) for k in kinds for a in ((0,), (1,), (0, 1)))


def moves(x: Any, y: Any) -> Any:
    """Of rows of two lengths."""
    behind = xt.slice(xt.concatenate(x, y, axis=0), starts=(N, 0), limits=(N + M, 4))
    return (xt.concatenate(x, xt.reverse(y, axes=[0]), behind, axis=0), xt.reverse(x, axes=[0, 1]),
            xt.transpose(y, perm=[1, 0]), xt.broadcast(xt.reshape(x, shape=(N, 1, 4)), shape=(N, M, 4)),
            xt.slice(y, starts=(0, 1), limits=(M, 3)), xt.pad(x, low=(1, 0), high=(2, 3), value=2.0),
            xt.iota(shape=(N, M), axis=1, dtype="i64"))


def views(x: Any) -> Any:
    return xt.exp(xt.reshape(x, shape=(N * M * 6,))), xt.neg(xt.reshape(x, shape=(3, 2 * M, N))), \
        xt.reshape(xt.exp(x), shape=(N, 2, 1, 3 * M))


def gathers(x: Any, i: Any, j: Any) -> Any:
    """From dims that have elements, at as many places as there are."""
    places = xt.reshape(i, shape=(N, 1))
    return (xt.gather(x, i, axis=0), xt.gather_elements(x, j, axis=0), xt.gather_nd(x, places),
            xt.gather_nd(xt.reshape(x, shape=(3, 3, M)), xt.concatenate(places, places, axis=1)),
            xt.dynamic_slice(x, zero(), zero(), sizes=(2, M)))


def scatters(x: Any, i: Any, u: Any) -> Any:
    """n updates of rows of m elements."""
    places = xt.reshape(i, shape=(N, 1))
    return (xt.scatter_nd(x, places, u, reduction="none"), xt.scatter_nd(x, places, u, reduction="add"),
            xt.scatter_elements(x, xt.broadcast(places, shape=(N, M)), u, axis=0),
            xt.scatter_elements(x, xt.broadcast(places, shape=(N, M)), u, axis=0, reduction="max"))


def boxes(x: Any, u: Any) -> Any:
    """Rows are put behind the first ones."""
    return xt.dynamic_update_slice(xt.concatenate(x, u, axis=0), xt.exp(u), xt.dim(N), zero())


def orders(x: Any) -> Any:
    return (*xt.sort(x, axis=1), *xt.sort(x, axis=0, descending=True), *xt.top_k(x, k=M, axis=1))


def scans(x: Any) -> Any:
    return tuple(xt.cumulative(x, kind=k, axis=a, exclusive=bool(a)) for k in ("sum", "max") for a in (0, 1))


def counts(x: Any) -> Any:
    set_ = xt.compare(x, number(0), direction="gt")
    return (xt.nonzero(set_, symbol="k"),
            xt.compress(xt.reshape(x, shape=(N * M,)), xt.reshape(set_, shape=(N * M,)), symbol="j", axis=0),
            *xt.unique(xt.reshape(x, shape=(N * M,)), symbol="u"))


def products(x: Any, y: Any, w: Any) -> Any:
    """Sums of n, of m and of 6 terms."""
    turned, columns = (xt.transpose(v, perm=[1, 0]) for v in (y, x))
    rows = xt.matmul(x, w)
    return (xt.matmul(columns, x), xt.add(xt.matmul(x, turned), number(1.0)), xt.maximum(rows, number(0.0)),
            xt.matmul(columns, rows))


def batches(x: Any, y: Any) -> Any:
    return xt.matmul(x, xt.transpose(y, perm=[0, 2, 1]))


def windows(x: Any, w: Any) -> Any:
    y = xt.convolution(x, w, low=(1, 1), high=(1, 1))
    pools = [xt.reduce_window(y, kind=k, window=(1, 1, 3, 3), strides=(1, 1, 1, 1), low=(0, 0, 1, 1),
                              high=(0, 0, 1, 1)) for k in ("max", "sum")]
    return y, *pools, xt.convolution(x, w, groups=1, low=(1, 1), high=(1, 1), strides=(2, 2))


def norms(x: Any) -> Any:
    return (xt.softmax(x, axis=1), xt.softmax(x, axis=0), xt.log_softmax(x, axis=1), xt.layer_norm(x, axes=(1,)),
            xt.rms_norm(x))


def attends(q: Any, k: Any, v: Any) -> Any:
    return xt.attention(q, k, v, causal=True), xt.attention(q, k, v)


def quantises(x: Any, s: Any) -> Any:
    y = xt.quantize(x, s, axis=1, dtype="i8")
    return y, xt.dequantize(y, s, axis=1)


def steps(x: Any, s: Any) -> Any:
    """A loop of n steps, and a branch on data."""
    carried, rows = xt.scan([s], [x], lambda c, y: ([xt.add(c[0], y[0])], [xt.mul(c[0], y[0])]))
    large = xt.compare(xt.reduce(s, kind="sum", axes=(0,), keepdims=False), number(0), direction="gt")
    return carried, rows, *xt.if_(large, lambda: [xt.exp(x)], lambda: [xt.neg(x)])


def bits(x: Any, y: Any) -> Any:
    whole = xt.div(x, xt.constant(3, dtype="i64"))
    return xt.xor(xt.and_(x, y), whole), xt.shift_left(x, xt.constant(2, dtype="i64")), xt.maximum(x, y)


def images(x: Any, g: Any, r: Any, b: Any) -> Any:
    """n images, m rows of a grid, m regions of other images."""
    others = xt.concatenate(x, xt.iota(shape=(3, 4, 5, 6), axis=3, dtype="f32"), axis=0)
    return (xt.grid_sample(x, g), xt.roi_align(others, r, b, size=(2, 2)),
            *xt.max_pool_with_indices(x, window=(2, 2), strides=(1, 1), low=(0, 0), high=(0, 0), dilations=(1, 1)),
            xt.group_norm(x, groups=2), xt.lrn(x, size=3, alpha=0.5))


def signals(x: Any) -> Any:
    return xt.dft(x, axis=1, onesided=True), xt.gelu(x), xt.gelu(x, approximate="tanh")


def columns(x: Any) -> Any:
    return xt.col2im(x, image=(4, 4), block=(2, 2), strides=(1, 1), low=(0, 0), high=(0, 0), dilations=(1, 1))


def turned(x: Any, c: Any, s: Any) -> Any:
    return xt.rotary(x, c, s), xt.rotary(x, c, s, interleaved=True)


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "pointwise": (lambda x, y, b: (xt.tanh(xt.add(xt.mul(x, y), x)), xt.select(b, x, y), xt.convert(x, dtype="i64")),
                  (t(N, M), t(M), t(N, M, dtype="i1"))),
    "sums": (sums, (t(N, M),)),
    "sums of bools and places": (
        lambda x, b: (xt.reduce(b, kind="or", axes=(0,)), xt.reduce(b, kind="and", axes=(1,)),
                      xt.arg_reduce(x, kind="argmax", axis=1), xt.arg_reduce(x, kind="argmin", axis=2)),
        (t(N, 5, 3), t(N, M, dtype="i1"))),
    "moves": (moves, (t(N, 4), t(M, 4))),
    "views": (views, (t(N, 2, M, 3),)),
    "gathers": (gathers, (t(9, M), t(N, dtype="i64"), t(N, M, dtype="i64"))),
    "scatters": (scatters, (t(9, M), t(N, dtype="i64"), t(N, M))),
    "boxes": (boxes, (t(N, 3), t(M, 3))),
    "orders": (orders, (t(N, M),)),
    "scans": (scans, (t(N, M),)),
    "counts": (counts, (t(N, M),)),
    "products": (products, (t(N, 6), t(M, 6), t(6, 16))),
    "batches": (batches, (t(N, M, 8), t(N, 3, 8))),
    "windows": (windows, (t(N, 3, 6, M), t(8, 3, 3, 3))),
    "norms": (norms, (t(N, M),)),
    "attention": (attends, (t(N, 2, M, 8), t(N, 2, M, 8), t(N, 2, M, 8))),
    "quantised": (quantises, (t(N, M), t(M))),
    "bits": (bits, (t(N, M, dtype="i64"), t(M, dtype="i64"))),
    "images": (images, (t(N, 4, 5, 6), t(N, M, 3, 2), t(M, 4), t(M, dtype="i64"))),
    "signals": (signals, (t(N, 8, M, 1),)),
    "columns": (columns, (t(N, 8, 9),)),
    "rotary": (turned, (t(N, M, 8), t(M, 4), t(M, 4))),
    "quantised by its range": (lambda x: xt.dynamic_quantize(xt.concatenate(x, xt.exp(x), xt.iota(
        shape=(1, 4), axis=1, dtype="f32"), axis=0)), (t(N, 4),)),
    "random": (lambda x: xt.random_uniform(shape=xt.shape_of(x)), (t(N, M),)),
    "steps": (steps, (t(N, M), t(M))),
    "recurrent": (lambda x, w, r: xt.lstm(x, w, r, None, None, None, None, None),
                  (t(N, M, 4), t(1, 12, 4), t(1, 12, 3))),
    "resized": (lambda x: xt.resize(x, shape=(N, 2, 2 * M, 3), mode="nearest", coordinate="asymmetric"),
                (t(N, 2, M, 3),)),
}


def bounded(module: Any) -> Any:
    """`module` with sizes from 0 on."""
    with module.context:
        i64 = ir.IntegerType.get_signless(64)
        bounds = ir.ArrayAttr.get([ir.IntegerAttr.get(i64, n) for n in (0, LARGEST)])
        module.operation.attributes["xt.dims"] = ir.DictAttr.get({"n": bounds, "m": bounds})
    return module


def values(kind: Any, sizes: dict[str, int], seed: int) -> Any:
    shape = [evaluate(d, sizes) for d in kind.shape]
    if kind.dtype == "i64":
        return np.random.default_rng(seed).integers(0, 3, shape)
    return behind_poison(filled(shape, xt.numpy_dtype(kind.dtype), seed, -1, 1))


def run(name: str) -> None:
    body, types = CASES[name]
    module = bounded(module_of(body, types))
    model = compiled(module)
    for seed, (n, m) in enumerate(SIZES):
        sizes = {"n": n, "m": m}
        arrays = [values(kind, sizes, seed + i) for i, kind in enumerate(types)]
        with np.errstate(all="ignore"):
            want = interpret(module, arrays)
        got = model.run({f"x{i}": a for i, a in enumerate(arrays)})
        for g, w in zip(got.values(), want, strict=True):
            compare(g, w, 4, f"{name} at {sizes}: {g} is not {w}")


@pytest.mark.filterwarnings("ignore:Mean of empty slice")
@pytest.mark.parametrize("name", CASES)
def test_zero_sizes(name: str) -> None:
    run(name)


INDEXED: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "gather": (lambda x, i: xt.gather(x, i, axis=0), (t(N, 4), t(M, dtype="i64"))),
    "gather_nd": (lambda x, i: xt.gather_nd(x, xt.reshape(i, shape=(M, 1))), (t(N, 4), t(M, dtype="i64"))),
    "gather_elements": (lambda x, i: xt.gather_elements(x, i, axis=0), (t(N, 4), t(M, 4, dtype="i64"))),
    "scatter_nd": (lambda x, i, u: xt.scatter_nd(x, xt.reshape(i, shape=(M, 1)), u),
                   (t(N, 4), t(M, dtype="i64"), t(M, 4))),
    "scatter_elements": (lambda x, i, u: xt.scatter_elements(x, i, u, axis=0),
                         (t(N, 4), t(M, 4, dtype="i64"), t(M, 4))),
    "argmax": (lambda x, u: xt.arg_reduce(x, kind="argmax", axis=0), (t(N, M), t(M))),
    "pad": (lambda x, u: xt.pad(x, low=(2, 0), high=(0, 0), mode="edge"), (t(N, M), t(M))),
    "resize": (lambda x, u: xt.resize(x, shape=(N + 1, M), mode="linear", coordinate="half_pixel"), (t(N, M), t(M)))}


@pytest.mark.parametrize("name", INDEXED)
def test_elements_of_nothing_are_refused(name: str) -> None:
    """Where there are no places there is no index, else a run ends with an error."""
    body, types = INDEXED[name]
    model = compiled(bounded(module_of(body, types)))

    def given(n: int, m: int) -> dict[str, Any]:
        return {f"x{i}": values(kind, {"n": n, "m": m}, i) for i, kind in enumerate(types)}

    with pytest.raises(UserError, match="too small"):
        model.run(given(0, 5))
    for n, m in ((0, 0), (3, 0), (3, 5)):
        assert model.run(given(n, m))["y0"].shape[-1] in (4, m)


def test_what_is_read_of_an_empty_array_is_memory() -> None:
    """Behind x, of rows of 256 KB, lies y: clamped coordinates read a row of x also where it has none."""
    row = 1 << 16
    model = compiled(bounded(module_of(lambda x, y: xt.concatenate(x, y, axis=0), [t(N, row), t(M, row)])))
    given = {"x0": np.empty((0, row), np.float32), "x1": filled((3, row), np.float32)}
    np.testing.assert_array_equal(model.run(given)["y0"], given["x1"])
    executor = model.executor
    assert executor._pointers[0] == executor.memory.address + 4 * row and executor.memory.room >= 8 * row
    np.testing.assert_array_equal(model.run({"x0": given["x1"], "x1": given["x0"]})["y0"], given["x1"])


@pytest.mark.parametrize("name", ["sums", "moves", "scatters", "boxes", "products"])
def test_zero_sizes_on_gpus(name: str) -> None:
    with on_chip("sm_90a"):
        run(name)
