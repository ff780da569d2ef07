"""Computes f32 models in f16 or bf16 where that is safe.

Inputs and outputs of the model keep their types, and so do updates of inputs in place. A *wide* op stays in f32: sums,
exponentials, norms, softmax, masks of attention, and what feeds or follows them alone; every other op computes in the
narrow type, contractions with f32 sums inside. A value has a wide and a narrow form, each made when first asked for, so
that wide ops that follow each other lose nothing between them, and the conversions fuse into the kernels around.

A CPU without instructions that multiply the narrow type computes in f32. There only the weights of products are stored
narrow, and widened in registers, a vector at a time: half the bytes and the sums of f32.

Before, with ``precision=f16``::

    %y = xt.dot_general(%x, %w) : f32
    %z = xt.softmax(%y) : f32

After::

    %y = xt.dot_general(xt.convert(%x), %w.f16) : f16
    %z = xt.softmax(xt.convert(%y)) : f32
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from xcc._mlir import Attribute, InsertionPoint, Module, Operation, OpOperand, Value, ir
from xcc.diagnostics import UserError
from xcc.dialects import xt
from xcc.dialects.xt.types import numpy_dtype
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.graph.rewrite import blocks_of, name_of
from xcc.passes.xt.products.panels import multiplies
from xcc.passes.xt.update_in_place import ops_of_updates
from xcc.weights import WeightStore

WIDE = frozenset((
    "exp", "exp2", "expm1", "log", "log1p", "log2", "pow", "sin", "cos", "tan", "sinh", "cosh", "asinh", "acosh",
    "atanh", "atan2", "rsqrt", "mod", "rem", "next_after", "cumulative", "softmax", "log_softmax", "layer_norm",
    "rms_norm", "group_norm", "lrn", "quantize", "dequantize", "dynamic_quantize", "random_uniform", "random_normal",
    "dft", "grid_sample", "roi_align", "deform_conv", "bitcast", "lstm", "gru", "rnn", "iota",
    "attention_query_gradient", "attention_key_gradients"))
SUMS = ("sum", "prod")
COMPOSITE = frozenset(("softmax", "log_softmax", "layer_norm", "rms_norm", "group_norm", "lrn", "lstm", "gru", "rnn"))
CONTROL = ("xtv.if", "xtv.while", "xtv.scan", "xtv.yield", "xtv.dispatch", "xtv.require", "xtv.fail", "func.return")
SPREADING = ("pointwise", "movement", "view")      # ops that may join a wide neighbour


@register_pass
class ConvertPrecision(Pass):
    """Computes f32 parts in `type` (f16, bf16) where that is safe; "" takes the compilation's precision.

    weights: only weights of products become narrow, as on CPUs that cannot multiply the type.
    """

    type: str = ""
    weights: bool = False

    def __post_init__(self) -> None:
        if self.type not in ("", "f16", "bf16", "f32", "tf32"):
            raise UserError(f"pass 'convert-precision' option 'type': '{self.type}' is none of f16, bf16")

    def run(self, module: Module, ctx: PassContext) -> None:
        narrow = self.type or (ctx.options.precision if ctx.options is not None else "")
        if narrow not in ("f16", "bf16"):
            return
        store = ctx.weights if ctx.weights is not None else WeightStore()
        chip = ctx.chip
        weights = self.weights or chip is not None and not chip.narrow_floats and not multiplies(chip, narrow)
        for function in module.body.operations:
            if function.operation.name == "func.func" and "xt.kernel" not in function.attributes:
                converter = _Converter(narrow, store, function)
                converter.narrow_weights() if weights else converter.run()


class _Converter:
    """Rewrites one function. `forms` maps an original value to its form in each type."""

    def __init__(self, narrow: str, weights: WeightStore, function: Operation) -> None:
        self.narrow, self.weights, self.function = narrow, weights, function
        self.f32 = ir.F32Type.get()
        self.types = {"f32": self.f32, narrow: ir.Type.parse(narrow)}
        self.forms: dict[Value, dict[str, Value]] = {}
        self.wide: set[Operation] = set()
        self.kept: set[Operation] = set()     # wide ops that change what an argument holds, in its own type

    def run(self) -> None:
        ops = list(self._ops(self.function.operation))
        self._choose(ops)
        for op in ops:
            self._convert(op)

    def narrow_weights(self) -> None:
        """Weights that products of f32 read."""
        for op in list(self._ops(self.function.operation)):
            if name_of(op) not in ("dot_general", "convolution") or not all(map(self._is_f32, op.operands)):
                continue
            for n, v in enumerate(list(op.operands)):
                if not isinstance(v.owner, ir.Block) and name_of(v.owner.operation) == "weight":
                    op.operands[n] = self._form(v, self.narrow)

    def _ops(self, root: Operation) -> Iterator[Operation]:
        for region in root.regions:
            for block in region.blocks:
                for op in list(block.operations):
                    yield op.operation
                    yield from self._ops(op.operation)

    def _is_f32(self, value: Value) -> bool:
        return isinstance(value.type, ir.RankedTensorType) and value.type.element_type == self.f32

    # which ops stay wide -------------------------------------------------------------------------------------------
    def _choose(self, ops: list[Operation]) -> None:
        floats = [op for op in ops if op.name not in CONTROL and
                  (any(map(self._is_f32, op.operands)) or any(map(self._is_f32, op.results)))]
        self.kept = {op for block in blocks_of(self.function) for op in ops_of_updates(block)}
        self.wide = {op for op in floats if self._wide_by_itself(op) or op in self.kept}
        for op in floats:                       # forward: arithmetic on sums alone, and what ranks do with them
            if (self._spreads(op) or xt.CLASSES[op.name].effects) and self._follows(op):
                self.wide.add(op)
        for op in reversed(floats):             # backward: what only wide ops read
            uses = [use for r in op.results for use in r.uses]
            if self._spreads(op) and uses and all(map(self._reads_wide, uses)):
                self.wide.add(op)

    def _wide_by_itself(self, op: Operation) -> bool:
        name = name_of(op)
        if name in WIDE:
            return True
        if name in ("reduce", "reduce_window"):
            return xt.attrs_of(op).kind in SUMS
        return name == "convert" and not all(map(self._is_f32, op.operands))    # integers become f32 exactly

    def _reads_wide(self, use: OpOperand) -> bool:
        op = use.owner.operation
        return op in self.wide or _is_mask(op, use.operand_number)

    def _spreads(self, op: Operation) -> bool:
        cls = xt.op_class(op)
        return cls is not None and cls.access in SPREADING and op not in self.wide

    def _follows(self, op: Operation) -> bool:
        """Whether every f32 operand is a constant or comes from a wide op that is no composite, and one does."""
        sums = 0
        for v in op.operands:
            if not self._is_f32(v):
                continue
            owner = v.owner
            if isinstance(owner, ir.Block):
                return False
            maker = owner.operation
            if name_of(maker) in ("constant", "weight"):
                continue
            if maker not in self.wide or maker in self.kept or name_of(maker) in COMPOSITE:
                return False
            sums += 1
        return sums > 0

    # rewriting -------------------------------------------------------------------------------------------------------
    def _convert(self, op: Operation) -> None:
        if name_of(op) in ("constant", "weight"):
            return
        narrow = op.name not in CONTROL and op not in self.wide
        if not any(v in self.forms or self._is_f32(v) for v in op.operands) and not any(map(self._is_f32, op.results)):
            return
        kind = self.narrow if narrow else "f32"
        for n, v in enumerate(list(op.operands)):
            if v in self.forms or self._is_f32(v):
                wide_mask = _is_mask(op, n) and "f32" in self.forms.get(v, ("f32",))
                op.operands[n] = self._form(v, "f32" if wide_mask else kind)
        if not narrow:
            return
        for result in op.results:
            if self._is_f32(result):
                result.set_type(xt.tensor_type(xt.shape_of(result), self.types[self.narrow]))
                self.forms[result] = {self.narrow: result}
        if "dtype" in op.attributes and xt.attrs_of(op).dtype == "f32":
            op.attributes["dtype"] = _dtype_like(op.attributes["dtype"], self.narrow)

    def _form(self, value: Value, kind: str) -> Value:
        """The value in the type `kind`, converted right after its definition when it is not there yet."""
        forms = self.forms.setdefault(value, {"f32": value})
        if kind not in forms:
            forms[kind] = self._converted(value, kind)
        return forms[kind]

    def _converted(self, value: Value, kind: str) -> Value:
        owner = value.owner
        if isinstance(owner, ir.Block):
            with ir.InsertionPoint.at_block_begin(owner):
                return xt.convert(value, dtype=kind)
        maker = owner.operation
        with maker.location, _after(maker):
            if kind == self.narrow and name_of(maker) == "weight":
                return self._weight(maker, value)
            if kind == self.narrow and name_of(maker) == "constant":
                return xt.constant(_cast(np.asarray(xt.attrs_of(maker).value), kind))
            return xt.convert(value, dtype=kind)

    def _weight(self, maker: Operation, value: Value) -> Value:
        name, weights = xt.attrs_of(maker).name, self.weights
        narrow = weights.add(f"{name}.{self.narrow}", lambda: _cast(weights[name], self.narrow))
        shape = xt.shape_of(value)
        return xt.build(xt.OPS["weight"], name=narrow,
                        result_types=xt.TensorType(tuple(shape), self.narrow))


def _is_mask(op: Operation, n: int) -> bool:
    """Whether operand `n` is the mask of attention, which adds it to scores of f32.

    A narrow form of it would hide keys by -inf or -65504 where -3.4e38 leaves a row with all of them hidden uniform.
    """
    return name_of(op) in ("attention", "attention_with_sums") and n == 3


def _cast(value: np.ndarray[Any, Any], kind: str) -> np.ndarray[Any, Any]:
    """Rounded to `kind`; finite values stay finite."""
    wide = np.asarray(value, np.float32)
    target = numpy_dtype(kind)
    limit = 65504.0 if kind == "f16" else 3.3895313892515355e38
    return np.where(np.isfinite(wide), np.clip(wide, -limit, limit), wide).astype(target)


def _dtype_like(attr: Attribute, kind: str) -> Attribute:
    return ir.TypeAttr.get(ir.Type.parse(kind)) if isinstance(attr, ir.TypeAttr) else ir.StringAttr.get(kind)


def _after(op: Operation) -> InsertionPoint:
    """The insertion point behind `op`."""
    block = op.block
    ops = list(block.operations)
    at = next(n for n, o in enumerate(ops) if o.operation == op)
    return ir.InsertionPoint(ops[at + 1])
