"""Small ONNX graphs against onnxruntime: compiled for this CPU, or for a GPU, whose code the interpreter runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from compiled import compare
from onnx import helper, numpy_helper

import xcc
from xcc.interpreter.executor import make_executor as interpreting

RNG = np.random.default_rng(0)


def node(op: str, inputs: str, outputs: str, **attrs: Any) -> Any:
    """A node of the values whose names `inputs` and `outputs` list; ``-`` stands for an input that is absent."""
    return helper.make_node(op, [n if n != "-" else "" for n in inputs.split()], outputs.split(), **attrs)


def numbers(*shape: int) -> Any:
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def ints(*values: int) -> Any:
    return np.array(values, np.int64)


def scalar(value: int) -> Any:
    return np.array(value, np.int64)


def info(name: str, array: Any, shape: Sequence[Any]) -> Any:
    """A value called `name` of the type of `array`."""
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), shape)


def with_outputs(nodes: Sequence[Any], inputs: dict[str, Any], results: Sequence[Any],
                 constants: dict[str, Any] | None = None, dims: dict[str, Sequence[int | str]] | None = None,
                 opset: int = 21) -> Any:
    """A model of the outputs `results`. `dims` are shapes of inputs that are not those of their arrays."""
    arguments = [info(n, a, (dims or {}).get(n, a.shape)) for n, a in inputs.items()]
    weights = [numpy_helper.from_array(np.asarray(a), n) for n, a in (constants or {}).items()]
    return helper.make_model(helper.make_graph(nodes, "g", arguments, results, weights),
                             opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def model_of(nodes: Sequence[Any], inputs: dict[str, Any], outputs: str, constants: dict[str, Any] | None = None,
             **options: Any) -> Any:
    """A model whose outputs have their types and ranks, which onnxruntime tells, but no sizes."""
    names = outputs.split()
    untyped = with_outputs(nodes, inputs, [onnx.ValueInfoProto(name=n) for n in names], constants, **options)
    typed = [info(n, a, [None] * a.ndim) for n, a in zip(names, reference(untyped, inputs), strict=True)]
    return with_outputs(nodes, inputs, typed, constants, **options)


def reference(model: Any, inputs: dict[str, Any]) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    results: list[Any] = session.run(None, inputs)
    return results


def compiled(model: Any, chip: str = "", **options: Any) -> Any:
    options = {"cache": False, "isolate": False, **options}
    if not chip:
        return xcc.compile(model, **options)
    target = "nvptx,code=ptx" if chip.startswith("sm_") else "amdgcn"
    made = xcc.compile(model, target=target, chip=chip, keep_ir=True, **options)
    a = made.artifact
    made._executor = interpreting(a.program, a.members, a.weights, a.manifest)
    return made


def check_runs(nodes: Sequence[Any], runs: Sequence[dict[str, Any]], outputs: str,
               constants: dict[str, Any] | None = None, chip: str = "", limits: dict[str, Any] | None = None,
               **model: Any) -> Any:
    """One compilation runs on all of `runs`, inputs by name, as onnxruntime does. `limits` are bounds of symbols."""
    source = model_of(nodes, runs[0], outputs, constants, **model)
    made = compiled(source, chip, dims=limits)
    for inputs in runs:
        for got, want in zip(made.run(inputs).values(), reference(source, inputs), strict=True):
            compare(got, want, 4)
    return made


def check(nodes: Sequence[Any], inputs: dict[str, Any], outputs: str, constants: dict[str, Any] | None = None,
          chip: str = "", dims: dict[str, Sequence[int | str]] | None = None, **options: Any) -> None:
    """One run, see :func:`check_runs`; `dims` are symbolic shapes of inputs."""
    check_runs(nodes, [inputs], outputs, constants, chip, dims=dims, **options)
