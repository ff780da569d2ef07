"""Builds one-kernel modules with the xt builders, evaluates them with numpy, and runs their linalg form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from linalg_exec import run_kernel

from xcc import symbolic
from xcc._mlir import func_d, ir
from xcc.context import shared_context
from xcc.dialects import xt
from xcc.passes.base import PassContext
from xcc.passes.xt_to_linalg.xt_to_linalg import XtToLinalg

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(7)


def floats(*shape: int, dtype: Any = np.float32) -> Any:
    return np.asarray(RNG.standard_normal(shape)).astype(dtype)


def positive(*shape: int) -> Any:
    return np.asarray(np.abs(RNG.standard_normal(shape)) + 0.1).astype(np.float32)


def ints(*shape: int, low: int = -9, high: int = 10, dtype: Any = np.int32) -> Any:
    return RNG.integers(low, high, shape).astype(dtype)


def build_kernel(body: Callable[..., Any], inputs: Sequence[Array],
                 dynamic: bool = False) -> tuple[Any, dict[str, int]]:
    """A module with the kernel @k; `dynamic` makes each size above 1 a symbol, equal sizes the same one."""
    context = shared_context()
    env: dict[str, int] = {}
    with context, ir.Location.unknown():
        module = ir.Module.create()
        types = []
        for a in inputs:
            dims: list[Any] = []
            for size in a.shape:
                name = next((n for n, s in env.items() if s == size), f"d{len(env)}")
                if dynamic and size > 1:
                    env[name] = size
                    dims.append(symbolic.sym(name))
                else:
                    dims.append(size)
            types.append(xt.tensor_type(dims, ir.Type.parse(xt.dtype_name(a.dtype))))
        with ir.InsertionPoint(module.body):
            function = func_d.FuncOp("k", (types, []), visibility="private")
            entry = function.add_entry_block()
        with ir.InsertionPoint(entry):
            out = body(*entry.arguments)
            results = list(out) if isinstance(out, (tuple, list)) else [out]
            func_d.ReturnOp(results)
        function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, [r.type for r in results]))
        function.attributes["xt.kernel"] = ir.UnitAttr.get()
        function.attributes["xt.symbols"] = ir.ArrayAttr.get([ir.StringAttr.get(n) for n in env])
        assert module.operation.verify()
    return module, env


def evaluate(module: Any, inputs: Sequence[Array]) -> list[Array]:
    """The results of @k by the ops' own numpy definitions; the kernel must be static."""
    block = module.body.operations[0].regions[0].blocks[0]
    values = dict(zip(block.arguments, inputs, strict=True))
    for op in block.operations:
        if op.operation.name == "func.return":
            return [np.asarray(values[v]) for v in op.operands]
        if op.operation.name == "xt.dim":
            values[op.operation.results[0]] = np.array(xt.attrs_of(op).value[0], np.int64)
            continue
        operands = [None if v is None else tuple(values[x] for x in v) if isinstance(v, tuple) else values[v]
                    for v in xt.grouped_operands(op)]
        with module.context:
            results = xt.evaluate(op, *operands)
        values.update(zip(op.operation.results, results, strict=True))
    raise AssertionError("no return")


def result_dims(module: Any) -> list[Any]:
    """The shapes of the results of the linalg form of @k: row-major, a dim may be split, unit dims may be absent."""
    return [xt.dims_from_attr(a) for a in module.body.operations[0].attributes["xt.result_dims"]]


def check(body: Callable[..., Any], *inputs: Array, rtol: float = 2e-6, atol: float = 1e-6,
          dynamic: bool = True) -> None:
    """Compares the linalg form of `body`, with static and with symbolic dims, to its numpy meaning."""
    module, _ = build_kernel(body, inputs)
    expected = evaluate(module, inputs)
    for symbolic_dims in (False, True) if dynamic else (False,):
        module, env = build_kernel(body, inputs, symbolic_dims)
        XtToLinalg().run(module, PassContext())
        assert module.operation.verify()
        shapes = [tuple(symbolic.evaluate(d, env) for d in dims) for dims in result_dims(module)]
        actual = run_kernel(module, "k", inputs, shapes, [e.dtype for e in expected], env)
        for a, e in zip(actual, expected, strict=True):
            a = a.reshape(e.shape)
            if e.dtype.kind in "biu":
                np.testing.assert_array_equal(a, e)
            else:
                np.testing.assert_allclose(a.astype(np.float64), e.astype(np.float64), rtol=rtol, atol=atol)


def run_sized(body: Callable[[Any], Any], *inputs: Any) -> None:
    """Ops whose result size is data: flat buffers of the upper bound, and the size as one more result."""
    module, _ = build_kernel(body, inputs)
    expected = evaluate(module, inputs)
    XtToLinalg().run(module, PassContext())
    actual = run_kernel(module, "k", inputs, result_dims(module), [*(e.dtype for e in expected), np.int64], {"n": 0})
    for a, e in zip(actual, expected, strict=False):
        np.testing.assert_array_equal(a[:e.size], e.reshape(-1))
        assert (a[e.size:].view(np.uint8) == 0x5A).all()
    sizes = {d for e in expected for d in e.shape}
    assert actual[-1][0] in sizes
