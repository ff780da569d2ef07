"""One node of com.microsoft, evaluated by the xt dialect and by onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from xcc._mlir import ir
from xcc.dialects.xt.interpret import interpret
from xcc.frontends.onnx import importer

RNG = np.random.default_rng(0)
BATCH, SEQ, HEADS, SIZE = 2, 5, 4, 16
WIDTH = HEADS * SIZE


def drawn(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def model(op: str, inputs: Sequence[Any], outputs: int, free: dict[int, Sequence[Any]] | None = None,
          constant: Sequence[int] = (), domain: str = "com.microsoft", **attributes: Any) -> Any:
    """One node. `free` has shapes with symbols for some inputs; those of `constant` are weights."""
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    kind = helper.np_dtype_to_tensor_dtype
    given = [helper.make_tensor_value_info(n, kind(x.dtype), (free or {}).get(i, x.shape))
             for i, (n, x) in enumerate(zip(names, inputs, strict=True)) if n and i not in constant]
    results = [onnx.ValueInfoProto(name=f"y{i}") for i in range(outputs)]
    weights = [numpy_helper.from_array(inputs[i], names[i]) for i in constant]
    node = helper.make_node(op, names, [f"y{i}" for i in range(outputs)], domain=domain, **attributes)
    sets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(helper.make_graph([node], "g", given, results, weights), opset_imports=sets, ir_version=10)


def evaluated(made: Any, feeds: dict[str, Any]) -> Any:
    with ir.Context():
        module, weights = importer.load(made)
        return interpret(module, feeds, weights)


def check(op: str, inputs: Sequence[Any], outputs: int = 1, atol: float = 2e-5, filled: Sequence[int] = (),
          **options: Any) -> None:
    """`filled` are the lengths of the rows of caches: what is behind them is nobody's."""
    made = model(op, inputs, outputs, **options)
    feeds = {f"x{i}": x for i, x in enumerate(inputs) if x is not None and i not in options.get("constant", ())}
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    session = onnxruntime.InferenceSession(made.SerializeToString(), settings, providers=["CPUExecutionProvider"])
    for g, want in zip(evaluated(made, feeds), session.run(None, feeds), strict=True):
        assert g.shape == want.shape and g.dtype == want.dtype
        if filled and g.ndim == 4:
            seen = np.arange(g.shape[2])[:, None] < np.reshape(filled, (-1, 1, 1, 1))
            g, want = np.where(seen, g, 0), np.where(seen, want, 0)
        np.testing.assert_allclose(g, want, atol=atol, rtol=1e-4)
