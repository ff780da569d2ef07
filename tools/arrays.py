"""Arrays of the command line: read from .npy and .npz files, made at random, written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from xcc import symbolic
from xcc.diagnostics import UserError
from xcc.runtime.dtypes import numpy_dtype
from xcc.runtime.signature import TensorInfo

__all__ = ["gather_inputs", "random_input", "read_array", "summary", "write_outputs"]

Array = np.ndarray[Any, Any]


def read_array(path: str) -> Any:
    """The array of an .npy file, or the mapping of an .npz file. Pickled objects are refused."""
    try:
        return np.load(path, allow_pickle=False)
    except OSError as e:
        raise UserError(f"{path}: cannot be read: {e.strerror or e}") from None
    except (ValueError, EOFError) as e:
        reason = "it is none, or damaged, or holds Python objects" if "pickle" in str(e) else e
        raise UserError(f"{path}: no .npy or .npz file of plain arrays: {reason}") from None


def gather_inputs(infos: Sequence[TensorInfo], given: Sequence[str], files: Sequence[str], seed: int | None,
                  dims: Mapping[str, int]) -> dict[str, Array]:
    """Inputs from ``NAME=FILE.npy`` texts and .npz files; the rest at random when `seed` is not None."""
    inputs: dict[str, Array] = {}
    for path in files:
        data = read_array(path)
        if not hasattr(data, "files"):
            raise UserError(f"{path}: --inputs takes an .npz file; for an .npy file write --input NAME={path}")
        inputs |= {name: data[name] for name in data.files}
    for text in given:
        name, eq, path = text.rpartition("=")
        if not eq:
            raise UserError(f"--input {text}: write NAME=FILE.npy")
        data = read_array(path)
        inputs[name] = data[data.files[0]] if hasattr(data, "files") else data
    rng = np.random.default_rng(seed or 0)
    for info in infos:
        if info.name not in inputs and seed is not None:
            inputs[info.name] = random_input(info, dims, rng)
    return inputs


def random_input(info: TensorInfo, dims: Mapping[str, int], rng: np.random.Generator) -> Array:
    """Normal floats, integers 0 or 1, or those that `dims` says; UserError names a dim that has no value."""
    shape = []
    for d in info.shape:
        try:
            shape.append(d if isinstance(d, int) else symbolic.evaluate(symbolic.parse(d), dims))
        except KeyError as e:
            raise UserError(f"input {info}: give the size of '{e.args[0]}' with --dim {e.args[0]}=SIZE") from None
    if any(n < 0 for n in shape):
        raise UserError(f"input {info}: a size cannot be negative, as in {shape}")
    dtype = numpy_dtype(info.dtype)
    if info.values:
        missing = [s for s in info.values if s not in dims]
        if missing:
            raise UserError(f"input {info}: give the value of '{missing[0]}' with --dim {missing[0]}=SIZE")
        return np.array([dims[s] for s in info.values]).astype(dtype).reshape(shape)
    if info.dtype[0] in "iu":
        return rng.integers(0, 2, shape).astype(dtype)
    return rng.standard_normal(shape).astype(np.float32).astype(dtype)


def write_outputs(path: str, outputs: Mapping[str, Array]) -> None:
    """One .npz file, or a folder with an .npy file an output."""
    try:
        if path.endswith(".npz"):
            np.savez(path, **{k: _plain(v) for k, v in outputs.items()})  # type: ignore[arg-type]
            return
        Path(path).mkdir(parents=True, exist_ok=True)
        for name, value in outputs.items():
            np.save(Path(path) / (name.replace("/", "_") + ".npy"), _plain(value))
    except OSError as e:
        raise UserError(f"{path}: cannot be written: {e.strerror or e}") from None


def _plain(a: Array) -> Array:
    """Types that numpy's files lack (bf16, fp8) become f32."""
    return a if a.dtype.kind in "biuf" else a.astype(np.float32)


def summary(name: str, a: Array) -> str:
    """``name: f32[1, 10] min -1.2 max 3.4 mean 0.1`` with the number of NaNs when there are any."""
    from xcc.runtime.dtypes import name_of

    head = f"{name}: {name_of(a.dtype)}{list(a.shape)}"
    if not a.size:
        return f"{head} empty"
    v = a.astype(np.float64)
    nans = int(np.isnan(v).sum())
    fine = v[np.isfinite(v)]
    text = f"{head} min {fine.min():.6g} max {fine.max():.6g} mean {fine.mean():.6g}" if fine.size else head
    return text + (f" NaN {nans}" if nans else "")
