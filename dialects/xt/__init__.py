"""The xt dialect: high-level tensor operations with symbolic dims.

    from xcc.dialects import xt

    with xt.context(), ir.Location.unknown():
        ...
        y = xt.softmax(xt.add(a, b), axis=-1)

Every op has a builder of its name (``xt.add``); Python keywords take a trailing underscore (``xt.and_``), and any
other name may. ``xt.OPS`` maps op names to classes. Importing this package imports the MLIR bindings.
"""

import importlib
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, SupportsFloat

from xcc._mlir import Context, Operation, Value, ir, irdl_d, upstream_context
from xcc.dialects.xt.base import Xt, dims_attr, dims_from_attr, element_type_of, shape_of, tensor_type
from xcc.dialects.xt.numeric import Array
from xcc.dialects.xt.op import (
    BUILDERS,
    CLASSES,
    OPS,
    Attrs,
    OpDefinition,
    attrs_of,
    build,
    grouped_operands,
    least_read,
    list_problem,
    op_class,
    verify,
)
from xcc.dialects.xt.reading import agree, assumed_equal, operand_types, value_symbols
from xcc.dialects.xt.types import TensorType, dtype_name, is_float, is_integer, is_signed, numpy_dtype, width
from xcc.dialects.xt.updates import carried_count, carried_values, initial_weights, updated_arguments

FAMILIES = ("elementwise", "shape", "slicing", "indexing", "selection", "positions", "reduce", "scans", "sort", "boxes",
            "matmul", "conv", "winograd", "resize", "sampling", "norm", "attention", "recurrent", "quant", "narrow",
            "random", "signal", "constant", "control", "collective")

for _family in FAMILIES:
    importlib.import_module(f"xcc.dialects.xt.{_family}")
globals().update(BUILDERS)  # after the imports, since `reduce` and a few others are also the names of family files

__all__ = ["CLASSES", "FAMILIES", "OPS", "Attrs", "TensorType", "OpDefinition", "Xt", "agree", "assumed_equal",
           "attrs_of", "build", "carried_count", "carried_values", "context", "dims_attr", "dims_from_attr",
           "dtype_name", "element_type_of", "evaluate", "grouped_operands", "initial_weights", "is_float", "is_integer",
           "is_signed", "least_read", "list_problem", "load", "numpy_dtype", "op_class", "operand_types",
           "scalar", "shape_of", "tensor_type", "updated_arguments", "value_symbols", "verify", "width"]


if TYPE_CHECKING:
    _Several = Callable[..., Any]       # a tuple of results
    attention_key_gradients: _Several
    attention_with_sums: _Several
    compress: _Several
    dynamic_quantize: _Several
    gru: _Several
    if_: _Several
    lstm: _Several
    max_pool_with_indices: _Several
    merge_runs: _Several
    rnn: _Several
    scan: _Several
    sort: _Several
    sort_rows: _Several
    sort_runs: _Several
    top_k: _Several
    unique: _Several
    unique_runs: _Several
    while_: _Several


def __getattr__(name: str) -> Callable[..., Value]:
    """The builder of an op whose name has a trailing underscore in Python."""
    try:
        return BUILDERS[name.removesuffix("_")]
    except KeyError:
        raise AttributeError(f"the xt dialect has no op '{name}'") from None


_loading = threading.Lock()
_declared: list[str] = []
"""The dialect in IRDL, once it is registered in a context."""


def load(context: Context) -> None:
    """Registers the dialect in `context`, once. Its classes are the process's: threads register one after the other.

    What the first registration declares, the others read: that takes a third of the time.
    """
    with _loading, context, ir.Location.unknown():
        if context.is_dialect_loaded("xt"):
            return
        if not _declared:
            Xt.load()
            _declared.append(str(Xt._mlir_module))
            return
        irdl_d.load_dialects(ir.Module.parse(_declared[0]))
        for view in Xt.operations:
            view._attach_traits()


def context() -> Context:
    """A new MLIR context with the dialect loaded."""
    out = upstream_context()
    load(out)
    return out


def scalar(value: SupportsFloat | Array, dtype: Any) -> Value:
    """A rank-0 xt.constant of the element type `dtype`."""
    return BUILDERS["constant"](value, dtype)


def evaluate(op: Operation, *arrays: Array | tuple[Array, ...] | None) -> tuple[Array, ...]:
    """The results of one op without regions on numpy arrays, grouped as the class declares its operands."""
    cls = op_class(op)
    assert cls is not None
    out = cls.evaluate(attrs_of(op), *arrays)
    return out if isinstance(out, tuple) else (out,)
