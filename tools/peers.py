"""Other runtimes, when they are installed: references and rivals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from xcc.diagnostics import UserError

__all__ = ["onnxruntime_session", "run_session", "typed_input"]


def onnxruntime_session(path: str, threads: int = 0) -> Any:
    """An onnxruntime CPU session; UserError when the package is missing or refuses the model."""
    try:
        import onnxruntime
    except ImportError:
        raise UserError("this needs onnxruntime: pip install onnxruntime") from None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    try:
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as e:
        raise UserError(f"onnxruntime refuses {path}: {str(e).splitlines()[0]}") from None


def run_session(session: Any, path: str, inputs: Mapping[str, Any], wanted: Iterable[str]) -> dict[str, Any]:
    """The outputs by name of a session of the model `path`; UserError where one of `wanted` is not among them, or where
    onnxruntime refuses the inputs."""
    names = [o.name for o in session.get_outputs()]
    for name in wanted:
        if name not in names:
            raise UserError(f"{path} has no output '{name}'; it has {', '.join(names)}")
    try:
        return dict(zip(names, session.run(names, inputs), strict=True))
    except Exception as e:
        raise UserError(f"onnxruntime cannot run {path}: {str(e).splitlines()[0]}") from None


def typed_input(session: Any, name: str, value: Any) -> Any:
    """`value`, a number or nested lists, as an array of the type of the session's input `name`."""
    import numpy as np

    kinds = {"tensor(float)": "float32", "tensor(double)": "float64", "tensor(bool)": "bool"}
    kind = next((i.type for i in session.get_inputs() if i.name == name), "")
    return np.asarray(value, kinds.get(kind) or kind.removeprefix("tensor(").removesuffix(")") or None)
