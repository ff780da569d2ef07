"""Per-thread code of ``tile.atomic`` and ``tile.compare_swap``: each element is one thread's, once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from xcc._mlir import Operation, Type, Value, arith_d, ir
from xcc.passes.gpu.layout.registers import from_registers, guarded, memory_type, registers_of
from xcc.passes.gpu.layout.tile_ops import element_bytes
from xcc.passes.shared.regions import either
from xcc.passes.shared.updates import emit_update

if TYPE_CHECKING:
    from xcc.passes.gpu.thread.kernel_builder import KernelBuilder


def atomic(k: KernelBuilder, op: Operation) -> None:
    """tile.atomic (value, line, mask, places), tile.compare_swap (value, line, mask, expected, places): where several
    threads hold an element the first one updates it, and tells the others what was there where that is asked for."""
    value, line, mask, *expected, places = op.operands
    layout, element = k.layout(op.results[0]), ir.VectorType(value.type).element_type
    memory = k.get(line)
    values, masks, indices, *wants = (registers_of(k.get(v)) for v in (value, mask, places, *expected))
    wanted = any(True for _ in op.results[0].uses)
    first = k.code.first_copy(layout)
    held = {layout.at(register=r): r for r in reversed(range(layout.registers))}
    old: list[Any] = [None] * layout.registers
    for r in sorted(held.values()):
        active = masks[r] if first is None else arith_d.andi(masks[r], first)
        update = partial(emit_update, op, memory, indices[r], values[r], [w[r] for w in wants])
        if wanted:
            old[r] = _where(active, element, update)
        else:
            guarded(active, update)
    if wanted:
        made = from_registers([old[held[layout.at(register=r)]] for r in range(layout.registers)])
        k.values[op.results[0]] = made if first is None else _told(k.shared, made, layout, element)


def _where(condition: Value, element: Type, update: Callable[[], Any]) -> Value:
    """What the update gives, 0 where the condition is false."""
    return either(condition, element, update,
                  lambda: arith_d.constant(element, 0.0 if isinstance(element, ir.FloatType) else 0))


def _told(shared: Any, value: Value, layout: Any, element: Type) -> Any:
    """What the first of the threads that hold an element has, in all of them. The tile has one dim."""
    stored = memory_type(element)
    size = layout.shape[0] * element_bytes(stored)
    buffer = shared.buffer(layout.shape[0], stored, shared.free_place(size))
    shared.write(value, buffer, layout)
    shared.barrier()
    return shared.read(buffer, layout, stored)
