"""What attributes of a module and of @main say: bounds of symbols, names of arguments and results."""

from __future__ import annotations

from xcc._mlir import Module, Operation


def bounds_of(module: Module) -> dict[str, tuple[int, int]]:
    """The bounds of symbols."""
    attributes = module.operation.attributes
    if "xt.dims" not in attributes:
        return {}
    return {named.name: tuple(int(v.value) for v in named.attr) for named in attributes["xt.dims"]}  # type: ignore


def name_of_place(op: Operation, where: str, index: int, default: str) -> str:
    """The name of argument or result `index`, by ``arg_attrs`` or ``res_attrs``; `default` where there is none."""
    if where not in op.attributes:
        return default
    entry = op.attributes[where][index]
    return str(entry["xt.name"].value) if "xt.name" in entry else default
