"""`scf`: loops and branches. Threads that do not take part keep the values they had."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from xcc.diagnostics import UserError
from xcc.interpreter.machine import Machine, expand
from xcc.interpreter.memory import MemRef
from xcc.interpreter.registry import Runner, op
from xcc.passes.walk import ops_where

if TYPE_CHECKING:
    from xcc._mlir import Operation
    from xcc.interpreter.kernel import Kernel

Array = np.ndarray[Any, Any]


def merge(condition: Array, new: np.ndarray[Any, Any], old: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """`new` for the threads of `condition`, `old` for the others."""
    if new is old:
        return new
    if not isinstance(new, np.ndarray):
        raise UserError("the interpreter cannot merge memrefs of threads that took different ways")
    rank = max(new.ndim, old.ndim)
    return np.where(expand(condition, rank), new, old)


@op("scf.for")
def _for(source: Operation, kernel: Kernel) -> Runner:
    body = kernel.block(source.regions[0].blocks[0])

    def run(machine: Machine, lower: Array, upper: Array, step: Array,
            *carried: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | tuple[np.ndarray[Any, Any], ...]:
        low, high, by = (machine.uniform(v) for v in (lower, upper, step))
        if low is None or high is None or by is None:
            return _divergent_for(machine, body, lower, upper, step, list(carried))
        values = list(carried)
        for counter in range(int(low), int(high), int(by)):
            values = body.run(machine, [np.full(1, counter, lower.dtype), *values])
        return _results(values)
    return run


def _results(values: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any] | tuple[np.ndarray[Any, Any], ...]:
    return values[0] if len(values) == 1 else tuple(values)


def _divergent_for(machine: Machine, body: Any, lower: Array, upper: Array, step: Array, values: list[Any]) -> Any:
    counter = np.broadcast_to(lower, (machine.count,)).copy()
    for _ in range(machine.options.max_trips):
        going = machine.mask & (counter < upper)
        if not going.any():
            return _results(values)
        with machine.masked(going):
            new = body.run(machine, [counter, *values])
        values = [merge(going, n, o) for n, o in zip(new, values, strict=True)]
        counter = counter + step
    raise machine.fault("endless-loop", f"more than {machine.options.max_trips} trips")


@op("scf.if")
def _if(source: Operation, kernel: Kernel) -> Runner:
    blocks = [kernel.block(r.blocks[0]) if len(r.blocks) else None for r in source.regions]
    ends = "xcc.ends" in source.attributes      # of passes/gpu/join_grids.py

    def run(machine: Machine, condition: Array) -> np.ndarray[Any, Any] | tuple[np.ndarray[Any, Any], ...]:
        if ends:
            machine.ended |= machine.mask & ~condition
        chosen = machine.uniform(condition)
        if chosen is not None:
            block = blocks[0] if chosen else blocks[1]
            return _results(block.run(machine)) if block else ()
        values: list[list[np.ndarray[Any, Any]]] = []
        for block, flags in zip(blocks, (condition, ~condition), strict=True):
            if block is None:
                continue
            with machine.masked(machine.mask & flags):
                values.append(block.run(machine))
        if not source.results:
            return ()
        return _results([merge(condition, a, b) for a, b in zip(*values, strict=True)])
    return run


_WAITING = ("a loop around an atomic update waits for what nobody does: workgroups run one after the other here, and a "
            "GPU need not run a later one before an earlier one ends")


def _same(a: Array, b: Array) -> bool:
    return a is b or isinstance(a, np.ndarray) and np.array_equal(a, b)


def _acquire(machine: Machine) -> None:
    """What a loop waited for is there: all that earlier workgroups did is ordered before what follows."""
    for value in machine.env:
        if isinstance(value, MemRef) and value.buffer.space == "global" and value.buffer.tracker is not None:
            value.buffer.tracker.order(int(machine.groups[0]))


@op("scf.while")
def _while(source: Operation, kernel: Kernel) -> Runner:
    before, after = (kernel.block(r.blocks[0]) for r in source.regions)
    spins = bool(ops_where(source, lambda o: o.name in ("memref.atomic_rmw", "memref.generic_atomic_rmw")))
    kernel.spins |= spins

    def run(machine: Machine, *initial: Array) -> Array | tuple[Array, ...]:
        values, results = list(initial), None
        going = machine.mask
        idle = 0
        seen: tuple[Array, ...] | None = None
        for _ in range(machine.options.max_trips):
            if spins:
                now = (np.asarray(machine.updates), going, *values)
                idle = idle + 1 if seen is not None and all(map(_same, now, seen)) else 0
                seen = now
                if idle > machine.options.max_idle:
                    raise machine.fault("endless-loop", _WAITING)
            with machine.masked(going):
                condition, *passed = before.run(machine, values)
                results = passed if results is None else [merge(going, n, o)
                                                          for n, o in zip(passed, results, strict=True)]
                going = going & condition
            if not going.any():
                if spins:
                    _acquire(machine)
                return _results(results)
            with machine.masked(going):
                new = after.run(machine, results)
            values = [merge(going, n, o) for n, o in zip(new, values, strict=True)] if len(new) == len(values) else new
        raise machine.fault("endless-loop", f"more than {machine.options.max_trips} trips")
    return run


@op("scf.execute_region")
def _execute_region(source: Operation, kernel: Kernel) -> Runner:
    block = kernel.block(source.regions[0].blocks[0])
    return lambda machine: _results(block.run(machine))


@op("scf.index_switch")
def _index_switch(source: Operation, kernel: Kernel) -> Runner:
    default, *cases = [kernel.block(r.blocks[0]) for r in source.regions]
    labels = list(source.attributes["cases"])

    def run(machine: Machine, value: Array) -> Array | tuple[Array, ...]:
        chosen = machine.uniform(value)
        if chosen is None:
            raise UserError("the interpreter needs one value of scf.index_switch for all threads")
        return _results((cases[labels.index(int(chosen))] if int(chosen) in labels else default).run(machine))
    return run
