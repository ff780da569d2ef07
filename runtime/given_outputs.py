"""Arrays and streams that callers of ``Model.run`` bring along."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from xcc.diagnostics import UserError
from xcc.runtime import dlpack, dtypes
from xcc.runtime.large_pages import address_of
from xcc.runtime.program import DTYPE_BYTES
from xcc.runtime.signature import TensorInfo, check_tensor

__all__ = ["check_apart", "check_size", "given_outputs", "stream_of"]


def given_outputs(infos: Sequence[TensorInfo], out: Mapping[str, Any], updates: Mapping[str, str],
                  place: tuple[int, int]) -> list[Any]:
    """For each output what it is written to, a contiguous numpy array or DlTensor, or None; UserError where it cannot
    be. `updates`: the outputs that are written into inputs. `place`: the model's device, as DLPack has it."""
    names = [i.name for i in infos]
    for name in out:
        if name not in names:
            raise UserError(f"out: the model has no output '{name}'; it has {', '.join(names)}")
        if name in updates:
            raise UserError(f"out: '{name}' takes the place of input '{updates[name]}'")
    return [_written(i, out[i.name], place) if i.name in out else None for i in infos]


def _written(info: TensorInfo, value: Any, place: tuple[int, int]) -> Any:
    if isinstance(value, np.ndarray):
        return _checked(info, value)
    if not hasattr(value, "__dlpack__"):
        raise UserError(f"out: '{info.name}' is a {type(value).__name__}: give an array")
    try:
        tensor = dlpack.import_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as e:
        raise UserError(f"out: '{info.name}': the {type(value).__name__} cannot be shared: {e}") from None
    if tensor.device != place[0] or tensor.device == dlpack.CPU:
        return _checked(info, dlpack.to_numpy(tensor))
    if tensor.device_id != place[1]:
        raise UserError(f"out: '{info.name}' is on GPU {tensor.device_id}, the model runs on GPU {place[1]}")
    check_tensor(info, tensor.dtype, tensor.shape, given=False)
    if not tensor.contiguous:
        raise UserError(f"out: '{info.name}' is not contiguous (row-major)")
    return tensor


def _checked(info: TensorInfo, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    check_tensor(info, dtypes.name_of(array.dtype), array.shape, given=False)
    if not array.flags.c_contiguous:
        raise UserError(f"out: '{info.name}' is not contiguous (row-major)")
    if not array.flags.writeable:
        raise UserError(f"out: '{info.name}' is read-only")
    return array


def check_size(name: str, size: Sequence[int], target: Any) -> None:
    """UserError where the memory for the output `name` has not the size that it has in this run."""
    if tuple(target.shape) != tuple(size):
        raise UserError(f"out: '{name}' is {list(size)} in this run, the array for it {list(target.shape)}")


def check_apart(inputs: Sequence[TensorInfo], arrays: Sequence[Any], outputs: Sequence[TensorInfo],
                given: Sequence[Any]) -> None:
    """UserError where memory that outputs are written to is also an input's, or another's."""
    spans = [(*_span(a), False, i.name) for i, a in zip(inputs, arrays, strict=True)]
    spans += [(*_span(a), True, i.name) for i, a in zip(outputs, given, strict=True) if a is not None]
    last = {False: (0, ""), True: (0, "")}      # of the inputs, and of the outputs, so far: the end that is farthest
    for begin, end, written, name in sorted(spans):
        if begin == end:
            continue
        for is_output, (reached, other) in last.items():
            if begin < reached and (written or is_output):
                target, rest = (name, other) if written else (other, name)
                kind = "" if written and is_output else "input "
                raise UserError(f"out: '{target}' shares memory with {kind}'{rest}'")
        last[written] = max(last[written], (end, name))


def _span(array: Any) -> tuple[int, int]:
    """Where the memory of a contiguous array begins and ends."""
    begin = address_of(array) if isinstance(array, np.ndarray) else array.pointer
    return begin, begin + (array.nbytes if isinstance(array, np.ndarray) else
                           prod(array.shape) * DTYPE_BYTES[array.dtype])


def stream_of(stream: Any) -> int | None:
    """The handle of a stream: a number, or an object of PyTorch (``cuda_stream``), CuPy (``ptr``) or with
    ``__cuda_stream__``; UserError for what is none."""
    if stream is None:
        return None
    if hasattr(stream, "__cuda_stream__"):
        found = stream.__cuda_stream__
        stream = (found() if callable(found) else found)[1]
    for attribute in ("cuda_stream", "ptr"):
        stream = getattr(stream, attribute, stream)
    if isinstance(stream, bool) or not isinstance(stream, int):
        raise UserError(f"stream is a {type(stream).__name__}: give the handle as a number, or a stream of PyTorch or "
                        "CuPy")
    return stream
