"""Runs linalg-stage kernels on this machine through upstream's own lowering: a check that shares no code with ours."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from xcc._mlir import ROOT, ir, passmanager

PIPELINE = """builtin.module(
  one-shot-bufferize{bufferize-function-boundaries=1 function-boundary-type-conversion=identity-layout-map},
  buffer-results-to-out-params{modify-public-functions=1},
  func.func(convert-linalg-to-loops, canonicalize), expand-strided-metadata, lower-affine,
  func.func(scf-forall-to-for),
  arith-expand, convert-scf-to-cf, convert-math-to-llvm, convert-math-to-libm,
  convert-cf-to-llvm, convert-arith-to-llvm, convert-index-to-llvm, finalize-memref-to-llvm,
  convert-func-to-llvm, convert-ub-to-llvm,
  reconcile-unrealized-casts)"""


def run_kernel(module: Any, name: str, inputs: Sequence[np.ndarray[Any, Any]], shapes: Sequence[Sequence[int]],
               dtypes: Sequence[Any], symbols: Mapping[str, int]) -> list[np.ndarray[Any, Any]]:
    """Calls kernel `name` of a linalg-stage module on `inputs`; the outputs have `shapes` and `dtypes`.

    Outputs are filled with a pattern before the call. The module is changed (lowered to LLVM).
    """
    engine_module = __import__(f"{ROOT}.execution_engine", fromlist=["ExecutionEngine"])
    runtime = __import__(f"{ROOT}.runtime", fromlist=["get_ranked_memref_descriptor"])
    with module.context:
        function = next(f for f in module.body.operations if ir.StringAttr(f.attributes["sym_name"]).value == name)
        names = [a.value for a in function.attributes["xt.symbols"]]
        loops = "xcc.loops" in function.attributes
        for f in list(module.body.operations):
            if f.operation != function.operation:
                f.operation.erase()
        function.attributes["llvm.emit_c_interface"] = ir.UnitAttr.get()
        function.attributes["sym_visibility"] = ir.StringAttr.get("public")
        passmanager.PassManager.parse(PIPELINE).run(module.operation)
        engine = engine_module.ExecutionEngine(module, opt_level=0)
    outputs = [np.frombuffer(b"\x5a" * (int(np.prod(s)) * np.dtype(d).itemsize), d).reshape(s).copy()
               for s, d in zip(shapes, dtypes, strict=True)]
    scalars = [ctypes.pointer(ctypes.c_int64(symbols[n])) for n in names]
    tensors = [ctypes.pointer(ctypes.pointer(runtime.get_ranked_memref_descriptor(_storage(a))))
               for a in (*inputs, *outputs)]
    order = [*tensors, *scalars] if loops else [*tensors[:len(inputs)], *scalars, *tensors[len(inputs):]]
    engine.invoke(name, *order)
    return outputs


def _storage(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same bytes as a plain integer or float array, contiguous."""
    a = a if a.flags.c_contiguous else np.ascontiguousarray(a)
    return a if a.dtype.kind in "if" and a.dtype.isbuiltin == 1 else a.view(f"i{a.dtype.itemsize}")
