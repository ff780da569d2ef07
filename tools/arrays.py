"""Arrays of the command line: read from .npy and .npz files, made at random, written."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from xcc import symbolic
from xcc.diagnostics import UserError, dim_option
from xcc.runtime.dtypes import numpy_dtype
from xcc.runtime.signature import TensorInfo

__all__ = ["check_dims", "fresh", "gather_inputs", "random_input", "read_array", "summary", "write_outputs"]

Array = np.ndarray[Any, Any]


def read_array(path: str) -> Array | dict[str, Array]:
    """The array of an .npy file, or those of an .npz file by name. Pickled objects are refused."""
    try:
        data = np.load(path, allow_pickle=False)
        return data if isinstance(data, np.ndarray) else {name: data[name] for name in data.files}
    except OSError as e:
        raise UserError(f"{path}: cannot be read: {e.strerror or e}") from None
    except (ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as e:
        reason = "it is none, or damaged, or holds Python objects" if "pickle" in str(e) else e
        raise UserError(f"{path}: no .npy or .npz file of plain arrays: {reason}") from None


def check_dims(dims: Iterable[str], symbols: Sequence[str]) -> None:
    """UserError for sizes (--dim) of what is no symbolic dim of the model."""
    for name in dims:
        if name not in symbols:
            raise UserError(f"--dim {name}: the model has no such dim; it has {', '.join(symbols) or 'none'}")


def fresh(model: Any, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """`inputs` for one run of `model` (an xcc.Model): those that the run writes to are copied."""
    written = set(model.updates.values())
    return {name: array.copy() if name in written else array for name, array in inputs.items()}


def gather_inputs(infos: Sequence[TensorInfo], given: Sequence[str], files: Sequence[str], seed: int | None,
                  dims: Mapping[str, int]) -> dict[str, Array]:
    """Inputs from ``NAME=FILE.npy`` texts and .npz files; the rest at random when `seed` is not None."""
    if seed is not None and seed < 0:
        raise UserError(f"--random {seed}: a seed is not negative")
    inputs: dict[str, Array] = {}
    for path in files:
        data = read_array(path)
        if not isinstance(data, dict):
            raise UserError(f"{path}: --inputs takes an .npz file; for an .npy file write --input NAME={path}")
        inputs |= data
    for text in given:
        name, eq, path = text.rpartition("=")
        if not eq:
            raise UserError(f"--input {text}: write NAME=FILE.npy")
        inputs[name] = _one_of(read_array(path), name, path)
    rng = np.random.default_rng(seed or 0)
    for info in infos:
        if info.name not in inputs and seed is not None:
            inputs[info.name] = random_input(info, dims, rng)
    return inputs


def _one_of(data: Array | dict[str, Array], name: str, path: str) -> Array:
    """An .npy file's array; of an .npz file the one called `name`, or its only one."""
    if not isinstance(data, dict):
        return data
    if name not in data and len(data) != 1:
        raise UserError(f"{path}: has no array '{name}'; it has {', '.join(data) or 'none'}")
    return data[name] if name in data else next(iter(data.values()))


def random_input(info: TensorInfo, dims: Mapping[str, int], rng: np.random.Generator) -> Array:
    """Normal floats, integers 0 or 1, or those that `dims` says; UserError names a dim that has no value."""
    shape = []
    for d in info.shape:
        try:
            shape.append(_size(d, dims))
        except KeyError as e:
            option = dim_option(e.args[0], "SIZE")
            raise UserError(f"input {info}: give the size of '{e.args[0]}' with {option}") from None
    if any(n < 0 for n in shape):
        raise UserError(f"input {info}: a size cannot be negative, as in {shape}")
    dtype = numpy_dtype(info.dtype)
    if info.values:
        missing = [s for s in info.values if s not in dims]
        if missing:
            raise UserError(f"input {info}: give the value of '{missing[0]}' with {dim_option(missing[0], 'SIZE')}")
        return np.array([dims[s] for s in info.values]).astype(dtype).reshape(shape)
    if info.dtype[0] in "iu":
        return rng.integers(0, 2, shape).astype(dtype)
    return rng.standard_normal(shape).astype(np.float32).astype(dtype)


def _size(dim: int | str, dims: Mapping[str, int]) -> int:
    """The size of an input's dim, a number, a name or an expression; KeyError with a name that `dims` lacks."""
    if isinstance(dim, int) or dim in dims:
        return dim if isinstance(dim, int) else dims[dim]
    try:
        return symbolic.evaluate(symbolic.parse(dim), dims)
    except ValueError:
        raise KeyError(dim) from None


def write_outputs(path: str, outputs: Mapping[str, Array]) -> None:
    """One .npz file, or a folder with an .npy file an output."""
    try:
        if path.endswith(".npz"):
            _write_npz(path, outputs)
            return
        names = [name.replace("/", "_") for name in outputs]
        if len(set(names)) < len(names):
            raise UserError(f"{path}: outputs whose names differ by '/' and '_' only need an .npz file")
        Path(path).mkdir(parents=True, exist_ok=True)
        for name, value in zip(names, outputs.values(), strict=True):
            np.save(Path(path) / f"{name}.npy", _plain(value))
    except OSError as e:
        raise UserError(f"{path}: cannot be written: {e.strerror or e}") from None


def _write_npz(path: str, arrays: Mapping[str, Array]) -> None:
    """As numpy.savez, which takes no array called "file"."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, value in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as f:
                np.lib.format.write_array(f, _plain(value), allow_pickle=False)


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
