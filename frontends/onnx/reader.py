"""Reads an .onnx file: the proto, checked, and its initializers as arrays that stay mapped to their files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import ModelProto, SparseTensorProto, TensorProto

from xcc.diagnostics import UserError
from xcc.frontends.onnx.element_types import bits, from_onnx

Array = np.ndarray[Any, Any]
MIN_OPSET, MAX_OPSET = 7, 28
"""An older model is taken as well when its ops have not changed up to opset 7."""


@dataclass
class Source:
    """A model and where it came from; `folder` is None for a model given as bytes or a proto."""

    model: ModelProto
    name: str
    folder: Path | None
    files: list[Path] = field(default_factory=list)        # files with external data that were read
    _maps: dict[Path, Array] = field(default_factory=dict)

    def dense(self, sparse: SparseTensorProto) -> Array:
        """A sparse initializer as a dense array."""
        values, indices = self.array(sparse.values), self.array(sparse.indices)
        dense = np.zeros(tuple(sparse.dims), values.dtype)
        at = tuple(indices.T) if indices.ndim == 2 else np.unravel_index(indices, dense.shape)
        dense[at] = values
        return dense

    def array(self, tensor: TensorProto) -> Array:
        """The tensor's values; external data is memory-mapped."""
        dims = tuple(tensor.dims)
        if any(d < 0 for d in dims):
            raise UserError(f"{self.name}: initializer '{tensor.name}' has a negative dimension: {list(dims)}")
        try:
            dtype = from_onnx(tensor.data_type)
        except UserError as e:
            raise UserError(f"{self.name}: initializer '{tensor.name}': {e}") from None
        if tensor.data_location == TensorProto.EXTERNAL:
            return self._external(tensor, dtype, dims)
        try:
            array = onnx.numpy_helper.to_array(tensor)
        except Exception as e:
            raise UserError(f"{self.name}: initializer '{tensor.name}' of {dtype} {list(dims)} cannot be read: "
                            f"{_first_line(e)}") from None
        return array if array.dtype == dtype else array.astype(dtype)

    def _external(self, tensor: TensorProto, dtype: np.dtype[Any], dims: tuple[int, ...]) -> Array:
        where = f"{self.name}: initializer '{tensor.name}'"
        entries = {e.key: e.value for e in tensor.external_data}
        path = self._safe_path(where, entries.get("location", ""))
        count = prod(dims)
        packed = bits(dtype) in (2, 4)
        needed = (count * bits(dtype) + 7) // 8 if packed else count * dtype.itemsize
        try:
            offset = int(entries.get("offset", 0))
            length = int(entries.get("length", needed))
        except ValueError:
            raise UserError(f"{where}: external data has a malformed offset or length") from None
        data = self._map(where, path)
        if length != needed or offset < 0 or offset + length > data.size:
            raise UserError(f"{where}: {dtype} {list(dims)} needs {needed} bytes at offset {offset}, but the model "
                            f"gives {length} and '{path.name}' has {data.size}")
        raw = data[offset:offset + length]
        if packed:
            copy = TensorProto(data_type=tensor.data_type, dims=dims, raw_data=raw.tobytes())
            return onnx.numpy_helper.to_array(copy).astype(dtype, copy=False)
        if offset % dtype.itemsize:
            raw = raw.copy()
        return raw.view(dtype).reshape(dims)

    def _safe_path(self, where: str, location: str) -> Path:
        if self.folder is None:
            raise UserError(f"{where} has external data, but the model was not loaded from a file: give its path")
        if not location or "\0" in location:
            raise UserError(f"{where}: external data without a location")
        if os.path.isabs(location) or ".." in Path(location.replace("\\", "/")).parts:
            raise UserError(f"{where}: external data path '{location}' leaves the model's folder")
        root = self.folder.resolve()
        path = (root / location).resolve()
        if not path.is_relative_to(root):
            raise UserError(f"{where}: external data path '{location}' leaves the model's folder")
        if not path.is_file():
            raise UserError(f"{where}: external data file '{location}' is missing from '{root}'")
        return path

    def _map(self, where: str, path: Path) -> Array:
        if path not in self._maps:
            self.files.append(path)
            try:
                size = path.stat().st_size
                self._maps[path] = np.memmap(path, np.uint8, "r") if size else np.zeros(0, np.uint8)
            except OSError as e:
                raise UserError(f"{where}: cannot read '{path}': {e.strerror}") from None
        return self._maps[path]


def _first_line(e: Exception) -> str:
    return (str(e).strip() or type(e).__name__).splitlines()[0][:200]


def read(model: str | os.PathLike[str] | bytes | ModelProto) -> Source:
    """Reads and checks a model given as a path, as bytes, or as a proto."""
    if isinstance(model, ModelProto):
        source = Source(model, model.graph.name or "model", None)
    elif isinstance(model, bytes):
        source = Source(_parse(model, "model"), "model", None)
    else:
        path = Path(model)
        try:
            data = path.read_bytes()
        except OSError as e:
            raise UserError(f"cannot read '{path}': {e.strerror}") from None
        source = Source(_parse(data, path.name), path.name, path.parent)
    _check(source)
    return source


def _parse(data: bytes, name: str) -> ModelProto:
    model = ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError:
        raise UserError(f"{name}: not an ONNX model, or damaged (cannot be decoded, {len(data)} bytes)") from None
    return model


def _check(source: Source) -> None:
    model, name = source.model, source.name
    if not model.opset_import or not model.HasField("graph"):
        raise UserError(f"{name}: not an ONNX model, or damaged (no graph or no opset)")
    _check_text(model, name)
    seen: dict[str, int] = {}
    for opset in model.opset_import:
        domain = opset.domain if opset.domain != "ai.onnx" else ""
        if seen.setdefault(domain, opset.version) != opset.version:
            raise UserError(f"{name}: opset of domain '{domain}' is given twice, as {seen[domain]} and {opset.version}")
        if domain == "" and not 1 <= opset.version <= MAX_OPSET:
            raise UserError(f"{name}: opset {opset.version} is not supported; convert the model to an opset from "
                            f"{MIN_OPSET} to {MAX_OPSET} (onnx.version_converter)")


def _check_text(message: Any, name: str) -> None:
    """Text that is not UTF-8 comes out of protobuf as bytes; UserError names the field."""
    for field_, value in message.ListFields():
        repeated = isinstance(value, Sequence) and not isinstance(value, (str, bytes))
        if field_.type == field_.TYPE_STRING and any(isinstance(v, bytes) for v in (value if repeated else (value,))):
            raise UserError(f"{name}: damaged: the field {field_.full_name} is not valid text")
        if field_.type == field_.TYPE_MESSAGE:
            for nested in value if repeated else (value,):
                _check_text(nested, name)
