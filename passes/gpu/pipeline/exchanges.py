"""How conversions between layouts are done, as attributes say it (`convert-layouts`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xcc._mlir import Operation, ir
from xcc.diagnostics import UserError
from xcc.passes.gpu.exchange.conversions import Exchange
from xcc.passes.gpu.layout.forms import memory_of
from xcc.passes.gpu.layout.linear import Layout
from xcc.passes.gpu.layout.tile_ops import shape_of
from xcc.passes.gpu.pipeline.loads_ahead import LoadsAhead

EXCHANGE = "xcc.exchange"       # on a conversion: how it is done


def is_staged(cast: Operation, plan_of: Callable[[Any], LoadsAhead | None]) -> bool:
    """Whether all that use a conversion's result read it from what their loops keep in shared memory."""
    result = cast.results[0]
    loops = {u.owner.operation.parent.operation for u in result.uses}
    return bool(loops) and all(loop.name == "scf.for" and (plan := plan_of(loop)) is not None
                               and result in dict(plan.staged) for loop in loops)


def write_exchange(cast: Operation, exchange: Exchange) -> None:
    entries = {"by": ir.StringAttr.get(exchange.by)}
    if exchange.memory is not None:
        entries["memory"] = ir.StringAttr.get(str(exchange.memory))
    cast.attributes[EXCHANGE] = ir.DictAttr.get(entries)


def exchange_of(cast: Operation, source: Layout, target: Layout, room: int) -> Exchange:
    """How `cast` is done, the plain way where it does not say; a UserError where that cannot be."""
    element = ir.VectorType(cast.results[0].type).element_type
    if EXCHANGE not in cast.attributes:
        return Exchange.plain(source, element, room)
    entries = cast.attributes[EXCHANGE]
    try:
        memory = memory_of(entries["memory"].value, shape_of(cast.results[0])) if "memory" in entries else None
        found = Exchange(entries["by"].value, memory)
    except (KeyError, ValueError) as e:
        raise UserError(f"{cast.location}: {EXCHANGE} cannot be read: {e}") from None
    problem = found.problem(source, target, element, room)
    if problem:
        raise UserError(f"{cast.location}: no layout is converted by '{found.by}' here, as {EXCHANGE} says: {problem}")
    return found
