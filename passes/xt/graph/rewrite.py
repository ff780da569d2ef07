"""Walks and replacements that the passes on xt share.

A handle of an erased op is memory that was freed, and the bindings do not notice. So while ``walk_ops`` (or a loop over
``list(block.operations)``) is under way, an op is erased only when the walk is at it, by ``replace``. What a pattern
leaves without uses stays until ``erase_dead`` behind the walk. Maps from values and ops to what is known of them end
before anything in them is erased: what is built next may get the same address.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from xcc import symbolic
from xcc._mlir import Block, Module, Operation, Value, ir, maker, owner_op
from xcc.dialects.xt.op import attrs_of, build, grouped_operands, op_class
from xcc.dialects.xt.types import TensorType
from xcc.dim_text import quoted
from xcc.symbolic import Dim

PRODUCTS = ("dot_general", "convolution")


def blocks_of(op: Operation | Module) -> Iterator[Block]:
    """Every block below `op`, outer ones first."""
    for region in op.operation.regions:
        for block in region.blocks:
            yield block
            for inner in list(block.operations):
                yield from blocks_of(inner)


def walk_ops(module: Module) -> Iterator[Operation]:
    """Our ops below `module` in program order, as operations; ops made during the walk are not visited."""
    for block in blocks_of(module):
        for op in list(block.operations):
            if op_class(op) is not None:
                yield op.operation


def products(module: Module) -> list[Operation]:
    """The matrix products and convolutions below `module`, in program order."""
    return [op for op in walk_ops(module) if name_of(op) in PRODUCTS]


def name_of(op: Operation) -> str:
    """The op's name without its dialect."""
    return str(op.name).partition(".")[2]


def replace(op: Operation, values: Sequence[Value]) -> None:
    """Uses of the results become uses of `values`; the op is erased.

    A value of a less or more precise type may take over: the function's type says what it returns then.
    """
    for old, new in zip(list(op.results), values, strict=True):
        ends = [] if old.type == new.type else [u.owner.operation for u in old.uses]
        old.replace_all_uses_with(new)
        for end in ends:
            if end.name == "func.return":
                function = end.parent.operation
                kind = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
                function.attributes["function_type"] = ir.TypeAttr.get(
                    ir.FunctionType.get(kind.inputs, [v.type for v in end.operands]))
    op.erase()


def read_others(op: Operation, values: Mapping[Value, Value]) -> None:
    """Has `op` read what `values` has for its operands, inside its regions, too."""
    for n, v in enumerate(list(op.operands)):
        if v in values:
            op.operands[n] = values[v]
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                read_others(inner.operation, values)


@contextmanager
def at(op: Operation) -> Iterator[None]:
    """What is built inside goes before `op`, with its location."""
    with op.location, ir.InsertionPoint(op):
        yield


def loop_behind(value: Value, op: Operation) -> Operation | None:
    """The outermost loop around `op` that `value` is made outside of, and so is the same in each step of; None for
    none."""
    found, home = None, value.owner if isinstance(value.owner, ir.Block) else owner_op(value).block
    while op.block != home and op.parent is not None:
        op = op.parent.operation
        found = op if name_of(op) in ("scan", "while") else found
    return found


def producer(value: Value, name: str = "") -> Operation | None:
    """The op that makes `value` if it is ours (and called `name`), else None."""
    op = maker(value)
    return op if op is not None and op_class(op) is not None and (not name or name_of(op) == name) else None


def access_of(op: Operation) -> str:
    """How an op of ours reads its operands (docs/xt-design.md); "" for others."""
    return str(getattr(op_class(op), "access", ""))


def is_pointwise(op: Operation) -> bool:
    return access_of(op) == "pointwise"


def is_stored(value: Value) -> bool:
    """Whether `value` is a weight or a constant."""
    op = producer(value)
    return op is not None and name_of(op) in ("weight", "constant")


def users_of(value: Value) -> list[Operation]:
    """The ops that use `value`, each once."""
    return list(dict.fromkeys(u.owner.operation for u in value.uses))


def rebuilt(op: Operation, operands: Sequence[Value], **changed: Any) -> Value:
    """`op` on other operands, with some other attributes."""
    cls = op_class(op)
    assert cls is not None
    values = iter(operands)
    groups = [tuple(next(values) for _ in g) if isinstance(g, tuple) else None if g is None else next(values)
              for g in grouped_operands(op)]
    return build(cls, *groups, **(vars(attrs_of(op)) | changed))


def aligned_shape(value: Value, rank: int) -> tuple[Dim, ...]:
    """The shape of `value` with ones in front, as it is broadcast to `rank` dims."""
    own = TensorType.of(value).shape
    return (1,) * (rank - len(own)) + own


def same_type(a: Value, b: Value) -> bool:
    return TensorType.of(a) == TensorType.of(b)


def apply_rules(module: Module, rules: Mapping[str, Sequence[Callable[[Any], Any]]]) -> None:
    """Rewrites by the first of the rules for an op that gives something, until none has anything to do."""
    def first(op: Operation) -> Value | None:
        return next((made for rule in rules[name_of(op)] if (made := rule(op)) is not None), None)

    while rewrite(module, dict.fromkeys(rules, first)):
        pass


def rewrite(module: Module, rules: Mapping[str, Callable[[Any], Any]]) -> bool:
    """Visits each op once that there is a rule for, by its name; whether one did anything.

    A rule gives what takes the place of the op's result, a list for those of several results, or None. What is left
    without uses is erased behind the walk.
    """
    changed = False
    for op in walk_ops(module):
        rule = rules.get(name_of(op))
        if rule is None:
            continue
        with at(op):
            made = rule(op)
        if made is not None:
            replace(op, made if isinstance(made, (list, tuple)) else [made])
            changed = True
    erase_dead(module)
    return changed


def erase_dead(module: Module) -> int:
    """Erases our ops without uses, also those that MLIR does not know as pure; gives their number.

    An op that gives a symbol its value stays while the symbol is in a type or an attribute of what stays.
    """
    count = 0
    for block in reversed(list(blocks_of(module))):
        for op in reversed(list(block.operations)):
            operation = op.operation
            cls = op_class(operation)
            if cls is None or cls.effects or operation.name in ("xtv.yield", "xtv.require"):
                continue
            if not any(True for r in operation.results for _ in r.uses) and not _sizes_need(operation, module):
                operation.erase()
                count += 1
    return count


def _sizes_need(op: Operation, module: Module) -> bool:
    """Whether another op has a symbol that `op` gives its value."""
    names = {ir.StringAttr(op.attributes["symbol"]).value} if "symbol" in op.attributes else set()
    if name_of(op) == "if":
        names = {s for r in op.results for d in TensorType.of(r).shape for s in symbolic.symbols_of(d)}
        names -= _symbols_of_inputs(module)
    if not names:
        return False
    word = re.compile(r"(?<![\w.:])(?:" + "|".join(re.escape(_printed(quoted(n))) for n in names) + r")(?![\w.:])")
    return len(word.findall(str(module))) > len(word.findall(str(op)))


def _printed(text: str) -> str:
    """`text` as MLIR prints it in an attribute."""
    return "".join(chr(c) if 32 <= c < 127 and c not in b'"\\' else f"\\{c:02X}" for c in text.encode())


def _symbols_of_inputs(module: Module) -> set[str]:
    return {s for f in module.operation.regions[0].blocks[0].operations if f.operation.name == "func.func"
            for a in f.operation.regions[0].blocks[0].arguments for d in TensorType.of(a).shape
            for s in symbolic.symbols_of(d)}


def dim_bounds(module: Module) -> dict[str, tuple[int, int]]:
    """The declared bounds of symbols, from the module attribute xt.dims."""
    attributes = module.operation.attributes
    if "xt.dims" not in attributes:
        return {}
    out = {}
    for named in attributes["xt.dims"]:
        low, high = (int(v.value) for v in named.attr)
        out[named.name] = (low, high)
    return out
