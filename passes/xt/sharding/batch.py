"""The batch of a model whose ranks have a part each: a symbolic one becomes as many times what a rank has."""

from __future__ import annotations

from collections.abc import Mapping

from xcc import symbolic
from xcc._mlir import Module, Operation, Type, Value, ir
from xcc.dialects import xt
from xcc.dialects.xt.types import TensorType
from xcc.passes.xt.graph.rewrite import blocks_of, dim_bounds
from xcc.passes.xt.sharding.placement import divides
from xcc.passes.xt.sizes.equal_dims import EQUAL
from xcc.symbolic import Dim, Expr, bare_symbol, sym


def spread_batch(module: Module, main: Operation, ranks: int) -> Dim | None:
    """The size of the whole batch, the first dim of the first input that has dims; None where it does not divide.

    A symbol ``batch`` becomes ``2*batch`` everywhere: from here on it is what one of two ranks has.
    """
    shapes = [TensorType.of(v).shape for v in main.regions[0].blocks[0].arguments]
    first = next((s[0] for s in shapes if s), None)
    name = None if first is None else bare_symbol(first)
    if first is None or name is None:
        return first if first is not None and divides(first, 1, ranks) else None
    whole = sym(name) * ranks
    _replace(module, {sym(name): whole})
    bounds = dim_bounds(module)
    if name in bounds:
        low, high = bounds[name]
        i64 = ir.IntegerType.get_signless(64)
        bounds[name] = (-(-low // ranks), high // ranks)
        module.operation.attributes["xt.dims"] = ir.DictAttr.get({
            n: ir.ArrayAttr.get([ir.IntegerAttr.get(i64, b) for b in pair]) for n, pair in bounds.items()})
    return whole


def _replace(module: Module, env: Mapping[Expr, Dim]) -> None:
    """Each dim of types and attributes with `env` put in."""
    for block in blocks_of(module):
        for v in block.arguments:
            _retype(v, env)
        for op in block.operations:
            op = op.operation
            for v in op.results:
                _retype(v, env)
            cls = xt.op_class(op)
            for name, f in ({} if cls is None else cls.attribute_fields).items():
                if f.kind == "dims":
                    dims = f.decode(op.attributes[name])
                    op.attributes[name] = f.encode(tuple(symbolic.replace(d, env) for d in dims))
            if op.name == "func.func":
                kind = ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value)
                types = [[_replaced(t, env) for t in side] for side in (kind.inputs, kind.results)]
                op.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*types))
    attributes = module.operation.attributes
    if EQUAL in attributes:
        pairs = [xt.dims_from_attr(p) for p in ir.ArrayAttr(attributes[EQUAL])]
        attributes[EQUAL] = ir.ArrayAttr.get([
            xt.dims_attr([symbolic.replace(d, env) for d in pair]) for pair in pairs])


def _retype(value: Value, env: Mapping[Expr, Dim]) -> None:
    new = _replaced(value.type, env)
    if new != value.type:
        value.set_type(new)


def _replaced(t: Type, env: Mapping[Expr, Dim]) -> Type:
    if not isinstance(t, ir.RankedTensorType):
        return t
    kind = TensorType.of(t)
    shape = [symbolic.replace(d, env) for d in kind.shape]
    return t if shape == list(kind.shape) else kind.with_shape(shape).mlir()
