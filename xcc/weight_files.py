"""Weights on disk: safetensors files, memory-mapped when read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from xcc.diagnostics import UserError
from xcc.runtime.output_file import output_file
from xcc.weights import WeightStore

__all__ = ["parse_header", "read_weights", "safetensors_chunks", "write_weights"]

_DTYPES: dict[str, Any] = {
    "BOOL": np.bool_, "U8": np.uint8, "I8": np.int8, "U16": np.uint16, "I16": np.int16, "U32": np.uint32,
    "I32": np.int32, "U64": np.uint64, "I64": np.int64, "F16": np.float16, "BF16": ml_dtypes.bfloat16,
    "F32": np.float32, "F64": np.float64, "F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2,
}
_NAMES = {np.dtype(v): k for k, v in _DTYPES.items()}
_CODED = {name: np.dtype(getattr(ml_dtypes, name)) for name in (
    "int2", "int4", "uint2", "uint4", "float4_e2m1fn", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")}
"""Types without a safetensors name, in numpy a byte an element: U8 in a file, whose metadata name the type."""
ALIGN = 64


def parse_header(data: np.ndarray[Any, Any], where: str) -> dict[str, tuple[Any, tuple[int, ...], int, int]]:
    """name -> (dtype, shape, begin, end) of the safetensors bytes `data`; every size and offset is checked."""
    total = len(data)
    if total < 8:
        raise UserError(f"{where}: too short for a safetensors file ({total} bytes)")
    size = int.from_bytes(bytes(data[:8]), "little")
    if size > total - 8 or size > 100_000_000:
        raise UserError(f"{where}: safetensors header of {size} bytes in a file of {total}")
    try:
        header = json.loads(bytes(data[8:8 + size]))
        out = {}
        types = header.pop("__metadata__", {})
        for name, entry in header.items():
            dtype = np.dtype(_DTYPES[entry["dtype"]])
            if dtype == np.uint8 and types.get(name) in _CODED:
                dtype = _CODED[types[name]]
            shape = tuple(entry["shape"])
            begin, end = entry["data_offsets"]
            if not all(type(n) is int and n >= 0 for n in (*shape, begin, end)):
                raise ValueError(f"'{name}' has a size that is no natural number")
            count = 1
            for n in shape:
                count *= n
            if end - begin != count * dtype.itemsize or 8 + size + end > total:
                raise ValueError(f"'{name}' does not fit: bytes {begin}..{end}, shape {list(shape)}, {entry['dtype']}")
            out[name] = (dtype, shape, 8 + size + begin, 8 + size + end)
    except (KeyError, TypeError, ValueError, AttributeError) as e:
        raise UserError(f"{where}: bad safetensors header: {type(e).__name__}: {e}") from None
    return out


def read_weights(path: str | Path) -> WeightStore:
    """A store whose arrays are views of the memory-mapped file."""
    try:
        data = np.memmap(path, dtype=np.uint8, mode="r")
    except (OSError, ValueError) as e:
        raise UserError(f"{path}: cannot be read: {e}") from None
    store = WeightStore()
    for name, (dtype, shape, begin, end) in parse_header(data, str(path)).items():
        store.add(name, data[begin:end].view(dtype).reshape(shape))
    return store


def safetensors_chunks(store: WeightStore) -> tuple[bytes, list[str], int]:
    """(header bytes, names in file order, total size): each tensor starts at a multiple of 64 from the file's start."""
    names = list(store)
    entries: dict[str, Any] = {}
    at = 0
    for name in names:
        a = store[name]
        if a.dtype not in _NAMES and a.dtype.name not in _CODED:
            raise UserError(f"weight '{name}' has type {a.dtype}, which a safetensors file cannot hold")
        kind = _NAMES.get(a.dtype, "U8")
        entries[name] = {"dtype": kind, "shape": list(a.shape), "data_offsets": [at, at + a.nbytes]}
        at += -(-a.nbytes // ALIGN) * ALIGN
    # safetensors wants no holes between tensors: pad with u8 entries
    coded = {name: store[name].dtype.name for name in names if store[name].dtype not in _NAMES}
    filled: dict[str, Any] = {"__metadata__": coded} if coded else {}
    for i, name in enumerate(names):
        filled[name] = entries[name]
        begin, end = entries[name]["data_offsets"]
        gap = -(-end // ALIGN) * ALIGN - end
        if gap:
            filled[f"__pad.{i}"] = {"dtype": "U8", "shape": [gap], "data_offsets": [end, end + gap]}
    header = json.dumps(filled, separators=(",", ":")).encode()
    header += b" " * (-(len(header) + 8) % ALIGN)
    return len(header).to_bytes(8, "little") + header, names, 8 + len(header) + at


def write_weights(path: str | Path, store: WeightStore) -> None:
    """Writes `store` as a safetensors file (see :func:`output_file`)."""
    header, names, _ = safetensors_chunks(store)
    with output_file(path) as f:
        f.write(header)
        for name in names:
            data = np.ascontiguousarray(store[name])
            f.write(data.reshape(-1).view(np.uint8).data if data.size else b"")
            f.write(b"\0" * (-data.nbytes % ALIGN))
