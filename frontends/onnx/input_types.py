"""The inputs of a model: their types, and the values of those that become constants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TypeProto, ValueInfoProto

from xcc import symbolic
from xcc._mlir import Type, ir
from xcc.diagnostics import UserError
from xcc.dialects.xt.base import tensor_type
from xcc.frontends.onnx.element_types import from_onnx, is_floating, name_from_onnx
from xcc.symbolic import Dim

if TYPE_CHECKING:
    from xcc.frontends.onnx.importer import ModelImporter

__all__ = ["InputTypes", "tensor_kind"]


class InputTypes:
    """Types of the inputs of `importer`'s model; their free dims become its symbols."""

    def __init__(self, importer: ModelImporter) -> None:
        self.importer = importer

    def type_of(self, info: ValueInfoProto) -> Type:
        """The type of an input; UserError where it is no tensor of known rank."""
        where = f"{self.importer.source.name}: input '{info.name}'"
        if not info.type.HasField("tensor_type") and not info.type.optional_type.elem_type.HasField("tensor_type"):
            raise UserError(f"{where} is not a tensor (sequences and maps are not supported)")
        kind = tensor_kind(info)
        try:
            element = ir.Type.parse(name_from_onnx(kind.elem_type))
        except UserError as e:
            raise UserError(f"{where}: {e}") from None
        if not kind.HasField("shape"):
            raise UserError(f"{where} has no shape; give it one that has its rank at least")
        return tensor_type(self._dims(where, info.name, kind), element)

    def fixed(self, info: ValueInfoProto) -> np.ndarray[Any, Any]:
        """The value of an input of `fix` in the input's element type; its sizes become those of the dims it names."""
        where, value = f"{self.importer.source.name}: input '{info.name}'", self.importer.fix[info.name]
        if not info.type.HasField("tensor_type"):
            raise UserError(f"{where} is not a tensor and cannot be fixed")
        kind = info.type.tensor_type
        dtype = from_onnx(kind.elem_type)
        try:
            given = np.asarray(value)
            array: np.ndarray[Any, Any] = given.astype(dtype)
        except (TypeError, ValueError, OverflowError) as e:
            raise UserError(f"{where} cannot be fixed to {value}: {e}") from None
        if not is_floating(dtype) and not np.array_equal(array, given):
            raise UserError(f"{where} cannot be fixed to {value}: its type is {name_from_onnx(kind.elem_type)}")
        dims = self._dims(where, info.name, kind) if kind.HasField("shape") else list(array.shape)
        if len(dims) != array.ndim or any(not self._takes(d, n) for d, n in zip(dims, array.shape, strict=True)):
            shape = ", ".join(map(str, dims))
            raise UserError(f"{where} cannot be fixed to a value of shape {list(array.shape)}: it is [{shape}]")
        return array

    def _takes(self, dim: Dim, size: int) -> bool:
        """Whether `dim` can be `size`; a symbol is from now on."""
        name = symbolic.bare_symbol(dim) or ""
        option = self.importer.dims.get(name, (0, size))
        if isinstance(dim, int) or isinstance(option, int):
            return size == (dim if isinstance(dim, int) else option)
        self.importer.dims[name] = size
        self.importer.symbol(name)
        return option[0] <= size <= option[1]

    def _dims(self, where: str, name: str, kind: TypeProto.Tensor) -> list[Dim]:
        out: list[Dim] = []
        for i, d in enumerate(kind.shape.dim):
            if d.HasField("dim_value") and d.dim_value >= 0 and not (d.dim_value == 0 and self._zero_means_free(kind)):
                out.append(int(d.dim_value))
                continue
            named = any(map(str.isalnum, d.dim_param))      # exporters write "?" for each dim that they do not know
            out.append(self.importer.symbol(d.dim_param if named else self.importer.unused(f"{name}_dim{i}")))
        return out

    @staticmethod
    def _zero_means_free(kind: TypeProto.Tensor) -> bool:
        """Old exporters write 0 for an unknown dim; a tensor that is really empty has one 0 and no free dim."""
        return sum(bool(d.HasField("dim_value") and d.dim_value == 0) for d in kind.shape.dim) > 1


def tensor_kind(info: ValueInfoProto) -> TypeProto.Tensor:
    """The type of a tensor, or of an optional one."""
    type_ = info.type.optional_type.elem_type if info.type.HasField("optional_type") else info.type
    return type_.tensor_type
