"""Outputs that update inputs, as options say; and those that look like it, which are proposed and no more."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from xcc._mlir import Attribute, Module, Operation, ir
from xcc.diagnostics import UserError
from xcc.dialects import xt
from xcc.dialects.xt.updates import UPDATES

__all__ = ["mark_updates", "proposed_updates"]

_NEW, _OLD = re.compile(r"present(_key_values?)?"), re.compile(r"past(_key_values?)?")
"""How exporters begin the names of a cache's new value and of its old one; what follows is the same."""


def mark_updates(module: Module, updates: Mapping[str, str]) -> None:
    """Has results of @main update arguments, by name: {"present.0.key": "past.0.key"}."""
    if not updates:
        return
    with module.context:
        main = _main(module)
        results = _attributes(main, "res_attrs")
        names = [_name(r) for r in results]
        for name in updates:
            if name not in names:
                raise UserError(f"updates: there is no output '{name}'; there are {', '.join(map(repr, names))}")
        main.attributes["res_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(
            {a.name: a.attr for a in r} | ({UPDATES: ir.StringAttr.get(updates[n])} if n in updates else {}))
            for r, n in zip(results, names, strict=True)])
        xt.updated_arguments(main)


def proposed_updates(module: Module, note: Callable[[str], None]) -> None:
    """Notes the option for outputs that are, by their names and types, the new values of caches."""
    with module.context:
        main = _main(module)
        if any(n is not None for n in xt.updated_arguments(main)):
            return
        block = main.regions[0].blocks[0]
        old = {(_OLD.sub("", _name(a), count=1), str(xt.TensorType.of(v))): _name(a)
               for a, v in zip(_attributes(main, "arg_attrs"), block.arguments, strict=True) if _OLD.match(_name(a))}
        values = block.operations[len(block.operations) - 1].operation.operands
        new = {_name(r): (_NEW.sub("", _name(r), count=1), str(xt.TensorType.of(v)))
               for r, v in zip(_attributes(main, "res_attrs"), values, strict=True) if _NEW.match(_name(r))}
        found = [(name, old[key]) for name, key in new.items() if key in old]
    if found:
        note("outputs that look like new values of inputs of their shape; a run writes to the inputs themselves with "
             + " ".join(f"--update {new}={past}" for new, past in found))


def _main(module: Module) -> Operation:
    return next(op.operation for op in module.body.operations if op.operation.name == "func.func")


def _attributes(main: Operation, which: str) -> list[Attribute]:
    return [ir.DictAttr(a) for a in ir.ArrayAttr(main.attributes[which])] if which in main.attributes else []


def _name(attributes: Attribute) -> str:
    return str(ir.StringAttr(attributes["xt.name"]).value) if "xt.name" in attributes else ""
