"""Compiles small xt programs and compares them with the numpy meaning of their ops: for this CPU, or for a GPU's chip,
whose code the interpreter runs."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

import xcc
from xcc import symbolic
from xcc._mlir import func_d, ir
from xcc.context import shared_context
from xcc.dialects import xt
from xcc.dialects.xt.interpret import interpret
from xcc.interpreter.executor import make_executor as interpreting
from xcc.runtime.poison import guarded
from xcc.weight_files import write_weights

Array = np.ndarray[Any, Any]
EXAMPLES = float(os.environ.get("XCC_EXAMPLES", 0.5))
"""What the number of examples of each property test is multiplied with."""
_chip = ""

SIZES = st.sampled_from([0, 1, 1, 2, 3, 5, 7, 8, 13, 16, 17, 31, 32, 33, 64, 67])
SMALL = st.sampled_from([0, 1, 1, 2, 3, 4, 5, 7])
BF16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = [np.dtype(t) for t in (np.float32, np.float32, np.float64, np.float16, BF16)]
INTEGERS = [np.dtype(t) for t in (np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint64)]
TOLERANCE = {"float64": 1e-10, "float32": 3e-5, "float16": 4e-3, "bfloat16": 3e-2}


def examples(n: int) -> Any:
    """The settings of a property test with `n` examples. Failures are not shrunk: each try is a compilation.

    What is drawn is compiled in between, so that a busy machine seems slow in drawing.
    """
    return settings(max_examples=max(1, int(n * EXAMPLES)), phases=[Phase.explicit, Phase.generate],
                    suppress_health_check=[HealthCheck.too_slow])


def shapes(rank: tuple[int, int] = (0, 4), sizes: Any = SIZES, limit: int = 1 << 15) -> Any:
    """Shapes of at most `limit` elements."""
    return st.lists(sizes, min_size=rank[0], max_size=rank[1]).map(tuple).filter(lambda s: np.prod(s) <= limit)


@st.composite
def arrays(draw: Any, shape: Any, dtypes: Sequence[Any] = FLOATS, low: float = -3, high: float = 3) -> Array:
    """Numbers of any of `dtypes`; floats in [low, high], small integers, bools."""
    dims = draw(shape) if hasattr(shape, "filter") else shape
    return filled(dims, draw(st.sampled_from(list(dtypes))), draw(st.integers(0, 1 << 16)), low, high)


def filled(dims: Sequence[int], dtype: Any, seed: int = 0, low: float = -3, high: float = 3) -> Array:
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(dims) < 0.5
    if dtype.kind in "iu":
        return rng.integers(0 if dtype.kind == "u" else -9, 10, dims).astype(dtype)
    return np.asarray(rng.uniform(low, high, dims)).astype(dtype)


def build(body: Callable[..., Any], inputs: Sequence[Array], dynamic: bool = False) -> Any:
    """A module whose @main is `body`; with `dynamic` each size above 1 is a symbol, equal sizes the same one."""
    names: dict[int, Any] = {}
    return module_of(body, [xt.TensorType(tuple(
        names.setdefault(n, symbolic.sym(f"s{len(names)}")) if dynamic and n > 1 else n for n in a.shape),
        xt.dtype_name(a.dtype)) for a in inputs])


def module_of(body: Callable[..., Any], inputs: Sequence[Any]) -> Any:
    """A module whose @main is `body` on inputs x0, x1... of the given TensorTypes."""
    with shared_context(), ir.Location.unknown():
        module = ir.Module.create()
        types = [t.mlir() for t in inputs]
        with ir.InsertionPoint(module.body):
            function = func_d.FuncOp("main", (types, []))
            entry = function.add_entry_block()
        with ir.InsertionPoint(entry):
            out = body(*entry.arguments)
            results = list(out) if isinstance(out, (tuple, list)) else [out]
            func_d.ReturnOp(results)
        function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, [r.type for r in results]))
        for key, prefix, count in (("arg_attrs", "x", len(types)), ("res_attrs", "y", len(results))):
            function.attributes[key] = ir.ArrayAttr.get(
                [ir.DictAttr.get({"xt.name": ir.StringAttr.get(f"{prefix}{i}")}) for i in range(count)])
        assert module.operation.verify()
    return module


@contextmanager
def on_chip(name: str) -> Iterator[None]:
    """Inside, `compiled` makes code for a GPU's chip and runs it in the interpreter."""
    global _chip
    _chip = name
    try:
        yield
    finally:
        _chip = ""


def compiled(module: Any, weights: Any = None) -> Any:
    """A model to run, for this CPU or for the chip of `on_chip`. `weights` is a WeightStore."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "case.mlir")
        path.write_text(str(module))
        if weights is not None:
            write_weights(path.with_suffix(".safetensors"), weights)
        if not _chip:
            return xcc.compile(path, target="cpu", cache=False, isolate=False)
        target = "nvptx,code=ptx" if _chip.startswith("sm_") else "amdgcn"
        model = xcc.compile(path, target=target, chip=_chip, cache=False, keep_ir=True, isolate=False)
    a = model.artifact
    model._executor = interpreting(a.program, a.members, a.weights, a.manifest)
    return model


def check(body: Callable[..., Any], *inputs: Array, dynamic: bool = False, tolerance: float = 1.0) -> None:
    """Compares `body` compiled to `body` interpreted; `tolerance` multiplies what the element type allows."""
    expected = interpret(build(body, inputs), inputs)
    module = build(body, inputs, dynamic)
    given = {f"x{i}": (fenced if a.size % 2 else behind_poison)(a) for i, a in enumerate(inputs)}
    outputs = compiled(module).run(given)
    for got, want in zip(outputs.values(), expected, strict=True):
        compare(got, want, tolerance, module)


def behind_poison(a: Array) -> Array:
    """The same numbers in memory behind whose end lies NaN."""
    copy = guarded(a.shape, a.dtype)
    copy[...] = a
    return copy


def fenced(a: Array) -> Array:
    """The same numbers at the end of a page, behind which to read is a fault (where the system is Linux)."""
    size = -(-a.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, size + mmap.PAGESIZE)
    if sys.platform == "linux":
        end = ctypes.addressof(ctypes.c_char.from_buffer(memory)) + size
        assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(end), ctypes.c_size_t(mmap.PAGESIZE), 0) == 0
    copy: Array = np.ndarray(a.shape, a.dtype, memory, size - a.nbytes)
    copy[...] = a
    return copy


def compare(got: Array, want: Array, tolerance: float = 1.0, what: Any = "") -> None:
    """Equal, or for floats within a multiple of their precision of the largest number."""
    assert got.dtype == want.dtype and got.shape == want.shape, what
    relative = TOLERANCE.get(want.dtype.name)
    if relative is None and not xt.is_float(xt.dtype_name(want.dtype)):
        np.testing.assert_array_equal(got, want, err_msg=str(what))
        return
    relative = relative or 0.0
    a, b = got.astype(np.float64), want.astype(np.float64)
    finite = np.abs(b[np.isfinite(b)])
    scale = max(1.0, finite.max()) if finite.size else 1.0
    np.testing.assert_allclose(a, b, rtol=relative * tolerance, atol=relative * tolerance * scale, err_msg=str(what))
