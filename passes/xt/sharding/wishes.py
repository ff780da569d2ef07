"""What the user said of where inputs, outputs and weights lie: ``h.*.weight=tp:0``, ``wpe=whole``."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from xcc._mlir import Module, Operation, ir
from xcc.diagnostics import UserError
from xcc.dialects import xt
from xcc.dialects.xt.reading import block_results
from xcc.dialects.xt.types import TensorType
from xcc.passes.host.placement.places import main_of
from xcc.passes.xt.graph.rewrite import walk_ops
from xcc.passes.xt.sharding.placement import WHOLE, Placement, divides, split
from xcc.runtime.mesh import Mesh
from xcc.symbolic import symbols_of

Wish = tuple[str, str, int]
"""A pattern of names, an axis, "" for none, and a dim."""


def _text(wish: Wish) -> str:
    return f"shard '{wish[0]}={f'{wish[1]}:{wish[2]}' if wish[1] else 'whole'}'"


def check_wishes(module: Module, mesh: Mesh, wishes: tuple[Wish, ...]) -> None:
    """UserError for a wish that nothing is named by, or of an axis that there is not."""
    main = main_of(module)
    names = {xt.attrs_of(op).name for op in walk_ops(module) if op.name == "xt.weight"}
    for where, count in (("arg_attrs", len(main.regions[0].blocks[0].arguments)),
                         ("res_attrs", len(block_results(main.regions[0].blocks[0])))):
        names |= {name_of_value(main, where, n) for n in range(count)}
    for wish in wishes:
        if wish[1] and wish[1] not in mesh.names:
            raise UserError(f"{_text(wish)}: the mesh {mesh} has no axis '{wish[1]}'")
        if not any(fnmatchcase(name, wish[0]) for name in names):
            raise UserError(f"{_text(wish)}: no input, output or weight is called so")


def parsed_wish(text: str) -> Wish:
    """(pattern, axis, dim) of "PATTERN=AXIS:DIM"; the axis is "" for "PATTERN=whole"."""
    pattern, eq, placement = text.rpartition("=")
    axis, colon, dim = placement.partition(":")
    if not eq or not pattern or not (placement == "whole" or colon and axis and dim.isdecimal()):
        raise UserError(f"shard '{text}': write PATTERN=AXIS:DIM, as in 'h.*.weight=tp:0', or PATTERN=whole")
    return (pattern, "", 0) if placement == "whole" else (pattern, axis, int(dim))


def wished(wishes: Sequence[Wish], axis: str, ranks: int, name: str, t: TensorType, what: str) -> Placement | None:
    """What the user said of `name`, for this axis; the last pattern that matches counts."""
    found = [w for w in wishes if fnmatchcase(name, w[0]) and w[1] in ("", axis)]
    if not found:
        return None
    _, split_by, dim = found[-1]
    if not split_by:
        return WHOLE
    if dim >= t.rank or not divides(t.shape[dim], 1, ranks):
        symbols = symbols_of(t.shape[dim]) if dim < t.rank else ()
        fixed = f"; give it a size, as by --dim '{symbols[0]}={ranks * 32}'" if symbols else ""
        raise UserError(f"{_text(found[-1])}: {what} '{name}' is {t}, whose dim {dim} is not known to divide among "
                        f"{ranks} ranks{fixed}")
    return split(dim)


def name_of_value(op: Operation, where: str, n: int) -> str:
    """What argument or result `n` of the function `op` is called."""
    if where not in op.attributes:
        return ""
    entry = ir.DictAttr(ir.ArrayAttr(op.attributes[where])[n])
    return str(ir.StringAttr(entry["xt.name"]).value) if "xt.name" in entry else ""
