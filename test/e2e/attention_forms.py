"""Attention as exporters and models spell it: what the pass xt-recognise must find, and what its kernels must compute.

    python test/e2e/attention_forms.py          # every case at moderate sizes on this machine's GPU

A form builds a graph of xt ops; the reference is numpy in float64.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]
HALF, BRAIN, SINGLE = np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16), np.dtype(np.float32)
BOUND = {HALF: 2e-3, BRAIN: 1e-2, SINGLE: 2e-5}
SIZES = (32, 40, 64, 80, 96, 128, 160, 192, 256)


def product(xt: Any, q: Any, k: Any) -> Any:
    return xt.dot_general(q, k, lhs_batch=(0, 1), rhs_batch=(0, 1), lhs_contract=(3,), rhs_contract=(3,))


def weighted(xt: Any, p: Any, v: Any) -> Any:
    return xt.dot_general(p, v, lhs_batch=(0, 1), rhs_batch=(0, 1), lhs_contract=(3,), rhs_contract=(2,))


def number(xt: Any, value: float, like: Any) -> Any:
    return xt.scalar(value, xt.TensorType.of(like).dtype)


def composite(xt: Any, q: Any, k: Any, v: Any) -> Any:
    return xt.attention(q, k, v)


def scaled(xt: Any, q: Any, k: Any, v: Any) -> Any:
    """The scores times a constant, the softmax in f32."""
    s = product(xt, q, k)
    s = xt.mul(s, number(xt, xt.shape_of(q)[3] ** -0.5, s))
    p = xt.softmax(xt.convert(s, dtype="f32"), axis=3)
    return weighted(xt, xt.convert(p, dtype=xt.TensorType.of(q).dtype), v)


def unscaled(xt: Any, q: Any, k: Any, v: Any) -> Any:
    return weighted(xt, xt.softmax(product(xt, q, k), axis=3), v)


def turned(xt: Any, q: Any, k: Any, v: Any) -> Any:
    """Roots of the scale on both operands, the key transposed by the export: [batch, head, feature, key]."""
    root = xt.shape_of(q)[3] ** -0.25
    t = xt.mul(xt.transpose(k, perm=(0, 1, 3, 2)), number(xt, root, k))
    s = xt.dot_general(xt.mul(q, number(xt, root, q)), t, lhs_batch=(0, 1), rhs_batch=(0, 1), lhs_contract=(3,),
                       rhs_contract=(2,))
    return weighted(xt, xt.softmax(s, axis=3), v)


def divided(xt: Any, q: Any, k: Any, v: Any) -> Any:
    """Heads split off rows of all heads' features, the scores divided by a constant, heads joined again."""
    b, h, n, d = xt.shape_of(q)
    q, k, v = (xt.transpose(xt.transpose(x, perm=(0, 2, 1, 3)), perm=(0, 2, 1, 3)) for x in (q, k, v))
    s = product(xt, q, k)
    y = weighted(xt, xt.softmax(xt.div(s, number(xt, d ** 0.5, s)), axis=3), v)
    y = xt.reshape(xt.transpose(y, perm=(0, 2, 1, 3)), shape=(b, n, h * d))
    return xt.transpose(xt.reshape(y, shape=(b, n, h, d)), perm=(0, 2, 1, 3))


def added(xt: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    s = product(xt, q, k)
    s = xt.add(xt.mul(s, number(xt, xt.shape_of(q)[3] ** -0.5, s)), mask)
    return weighted(xt, xt.softmax(s, axis=3), v)


def added_wide(xt: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    """The mask is added in f32."""
    s = xt.convert(product(xt, q, k), dtype="f32")
    s = xt.add(xt.mul(s, xt.scalar(xt.shape_of(q)[3] ** -0.5, "f32")), mask)
    return weighted(xt, xt.convert(xt.softmax(s, axis=3), dtype=xt.TensorType.of(q).dtype), v)


def chosen(xt: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    """where(mask, scores, -inf), and 0 in place of the NaN of rows that see nothing."""
    s = product(xt, q, k)
    s = xt.select(mask, xt.mul(s, number(xt, xt.shape_of(q)[3] ** -0.5, s)), number(xt, -np.inf, s))
    p = xt.softmax(s, axis=3)
    return weighted(xt, xt.select(xt.is_nan(p), number(xt, 0.0, p), p), v)


def chosen_unguarded(xt: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    s = product(xt, q, k)
    s = xt.select(mask, xt.mul(s, number(xt, xt.shape_of(q)[3] ** -0.5, s)), number(xt, -np.inf, s))
    return weighted(xt, xt.softmax(s, axis=3), v)


def filled(xt: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    """where(mask, scores, the lowest f32)."""
    s = xt.convert(product(xt, q, k), dtype="f32")
    s = xt.mul(s, xt.scalar(xt.shape_of(q)[3] ** -0.5, "f32"))
    p = xt.softmax(xt.select(mask, s, xt.scalar(float(np.finfo(np.float32).min), "f32")), axis=3)
    return weighted(xt, xt.convert(p, dtype=xt.TensorType.of(q).dtype), v)


def diagonal(xt: Any, q: Any, k: Any, v: Any) -> Any:
    """Causal by comparing positions, those of the queries behind the first keys."""
    rows, keys = xt.shape_of(q)[2], xt.shape_of(k)[2]
    own = xt.add(xt.iota(shape=(rows, 1), axis=0), xt.scalar(keys - rows, "i64"))
    s = product(xt, q, k)
    seen = xt.compare(xt.iota(shape=(1, keys), axis=1), own, direction="le")
    s = xt.select(seen, xt.mul(s, number(xt, xt.shape_of(q)[3] ** -0.5, s)), number(xt, -65504.0, s))
    return weighted(xt, xt.softmax(s, axis=3), v)


def repeated(xt: Any, q: Any, k: Any, v: Any) -> Any:
    """Heads of keys and values written out for their groups of query heads."""
    b, h, keys, d = xt.shape_of(k)
    group = xt.shape_of(q)[1] // h

    def wide(x: Any) -> Any:
        x = xt.broadcast(xt.reshape(x, shape=(b, h, 1, keys, d)), shape=(b, h, group, keys, d))
        return xt.reshape(x, shape=(b, h * group, keys, d))

    return scaled(xt, q, wide(k), wide(v))


FORMS: dict[str, tuple[Callable[..., Any], str]] = {
    "composite": (composite, ""), "scaled": (scaled, ""), "unscaled": (unscaled, ""), "turned": (turned, ""),
    "divided": (divided, ""), "added": (added, "float"), "added_wide": (added_wide, "f32"),
    "chosen": (chosen, "bool"), "chosen_unguarded": (chosen_unguarded, "bool"), "filled": (filled, "bool"),
    "diagonal": (diagonal, ""), "repeated": (repeated, ""), "biased": (added, "heads"),
    "padded": (chosen_unguarded, "lengths")}
"""How each is built, and its mask: added in the operands' type or f32, what is chosen, a bias of each head for all
batches, the keys of each batch that are no padding."""


@dataclass(frozen=True)
class Case:
    """A form at one size; `shared` heads of keys and values."""

    form: str
    queries: int
    keys: int
    features: int = 64
    dtype: Any = HALF
    batch: int = 1
    heads: int = 2
    shared: int = 2

    def __str__(self) -> str:
        return f"{self.form} {self.dtype.name} b{self.batch} h{self.heads}/{self.shared} {self.queries}x{self.keys} " \
            f"d{self.features}"

    def arrays(self, seed: int = 0) -> list[Array]:
        """Queries, keys, values and the form's mask; some queries see no key where the form allows it."""
        rng = np.random.default_rng(seed)
        shapes = [(self.batch, self.heads, self.queries, self.features),
                  *[(self.batch, self.shared, self.keys, self.features)] * 2]
        # products of the unscaled form stay of the size of the others'
        size = self.features ** -0.25 if self.form == "unscaled" else 1.0
        out = [(rng.standard_normal(s) * size).astype(self.dtype) for s in shapes]
        kind = FORMS[self.form][1]
        if kind == "bool":
            seen = rng.random((self.batch, 1, self.queries, self.keys)) < 0.7
            seen[..., 0] = True
            if self.form == "chosen" and self.queries > 1:
                seen[:, :, -1] = False
            out.append(seen)
        elif kind == "lengths":
            out.append(np.arange(self.keys) < rng.integers(1, self.keys + 1, (self.batch, 1, 1, 1)))
        elif kind == "heads":
            out.append(rng.standard_normal((1, self.heads, self.queries, self.keys)).astype(self.dtype))
        elif kind:
            bias = rng.standard_normal((self.batch, 1, self.queries, self.keys))
            out.append(bias.astype(self.dtype if kind == "float" else np.float32))
        return out

    def reference(self, arrays: list[Array]) -> Array:
        q, k, v, *mask = (a if a.dtype == bool else a.astype(np.float64) for a in arrays)
        k, v = (np.repeat(x, self.heads // self.shared, 1) for x in (k, v))
        s = np.matmul(q, np.swapaxes(k, 2, 3)) * (1.0 if self.form == "unscaled" else self.features ** -0.5)
        if mask:
            s = np.where(mask[0], s, -np.inf) if mask[0].dtype == bool else s + mask[0]
        if self.form == "diagonal":
            s = np.where(np.tril(np.ones(s.shape[2:], bool), self.keys - self.queries), s, -np.inf)
        top = s.max(-1, keepdims=True)
        e = np.exp(s - np.where(np.isneginf(top), 0.0, top))
        total = e.sum(-1, keepdims=True)
        return np.asarray(np.matmul(e / np.where(total == 0, 1.0, total), v))

    def error(self, got: Array, want: Array) -> float:
        """Relative to the size of the result as a whole."""
        return float(np.linalg.norm(got.astype(np.float64) - want) / np.linalg.norm(want))


def small_cases() -> list[Case]:
    """Each form, each head size, both types, at odd sizes; one query and several."""
    out = [Case(form, 19, 77, dtype=BRAIN if n % 3 == 0 else HALF) for n, form in enumerate(FORMS)]
    out += [Case("scaled", 17, 50, d, BRAIN if n % 2 else HALF) for n, d in enumerate(SIZES)]
    out += [Case("scaled", 1, 150, d, HALF if n % 2 else BRAIN) for n, d in enumerate(SIZES[::2])]
    return [*out, Case("repeated", 9, 70, heads=4), Case("repeated", 1, 130, 80, BRAIN, heads=6),
            Case("added", 1, 90, 40), Case("chosen", 1, 200, 32, BRAIN, batch=2)]


def large_cases() -> list[Case]:
    """The same at sizes where all of a GPU takes part, the keys of a few heads in parts."""
    out = [Case(form, 333, 777, 128, dtype, 2, 4, 4) for form in FORMS for dtype in (HALF, BRAIN)]
    out += [Case("scaled", n, 1111, d, dtype, 2, 4, 4) for d in SIZES for n in (1, 250) for dtype in (HALF, BRAIN)]
    out += [Case("repeated", n, 2049, d, HALF, 1, 8, 2) for n in (1, 5, 100) for d in (64, 128)]
    return [*out, Case("added", 1, 4097, 128, HALF, 1, 8, 8), Case("chosen", 1, 4097, 128, BRAIN, 2, 8, 8)]


def module_of(case: Case, arrays: list[Array]) -> Any:
    """@main that computes the case from inputs x0, x1, ..."""
    from xcc._mlir import func_d, ir
    from xcc.context import shared_context
    from xcc.dialects import xt

    with shared_context(), ir.Location.unknown():
        module = ir.Module.create()
        kinds = [xt.TensorType(a.shape, xt.dtype_name(a.dtype)).mlir() for a in arrays]
        with ir.InsertionPoint(module.body):
            f = func_d.FuncOp("main", (kinds, []))
            with ir.InsertionPoint(f.add_entry_block()):
                out = FORMS[case.form][0](xt, *f.arguments)
                func_d.ReturnOp([out])
        f.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(kinds, [out.type]))
        for key, names in (("arg_attrs", [f"x{n}" for n in range(len(kinds))]), ("res_attrs", ["y"])):
            f.attributes[key] = ir.ArrayAttr.get([ir.DictAttr.get({"xt.name": ir.StringAttr.get(n)}) for n in names])
        return module


def main() -> None:
    from concurrent.futures import ThreadPoolExecutor
    from pathlib import Path
    from tempfile import TemporaryDirectory

    import xcc

    cases, bad = large_cases(), 0
    with TemporaryDirectory() as folder, ThreadPoolExecutor(8) as pool:
        def made(n: int, text: str) -> Any:
            path = Path(folder, f"{n}.mlir")
            path.write_text(text)
            return xcc.compile(path, target="nvptx")

        inputs = [case.arrays(n) for n, case in enumerate(cases)]
        texts = [str(module_of(case, arrays)) for case, arrays in zip(cases, inputs, strict=True)]
        models = list(pool.map(made, range(len(cases)), texts))
    for case, arrays, model in zip(cases, inputs, models, strict=True):
        named = {f"x{i}": a for i, a in enumerate(arrays)}
        model.run({k: a if a.dtype == bool else np.zeros_like(a) for k, a in named.items()})    # fills what is reused
        (got,) = model.run(named).values()
        (again,) = model.run(named).values()
        error = case.error(np.asarray(got), case.reference(arrays))
        right = error < BOUND[case.dtype] and np.array_equal(np.asarray(got), np.asarray(again))
        bad += not right
        kernels = [k["name"] for k in model.artifact.manifest["kernels"]]
        print(f"{case!s:54} {error:8.1e} {'' if right else 'WRONG'} {' '.join(kernels)}", flush=True)
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
