"""`gpu`: ids, barriers, shuffles, subgroup reductions, shared memory of the launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from xcc._mlir import Operation, ir
from xcc.interpreter.machine import Machine, expand
from xcc.interpreter.memory import MemRef
from xcc.interpreter.registry import Runner, op
from xcc.interpreter.types import dtype_of, space_of

if TYPE_CHECKING:
    from xcc.interpreter.kernel import Kernel

Array = np.ndarray[Any, Any]
_AXES = {"#gpu<dim x>": 0, "#gpu<dim y>": 1, "#gpu<dim z>": 2}


def _axis(source: Operation) -> int:
    return _AXES[str(source.attributes["dimension"])]


def _coordinate(linear: Array, extent: tuple[int, int, int], axis: int) -> Array:
    x, y, z = extent
    return (linear % x, linear // x % y, linear // (x * y))[axis].astype(np.int64)


@op("gpu.thread_id")
def _thread_id(source: Operation, _: Kernel) -> Runner:
    axis = _axis(source)
    return lambda machine: _coordinate(machine.local_thread, machine.block, axis)


@op("gpu.block_id")
def _block_id(source: Operation, _: Kernel) -> Runner:
    axis = _axis(source)

    def run(machine: Machine) -> Array:
        ids = _coordinate(machine.group, machine.grid, axis)
        return ids[:1] if machine.grid[axis] == 1 or len(machine.groups) == 1 else ids
    return run


@op("gpu.global_id")
def _global_id(source: Operation, _: Kernel) -> Runner:
    axis = _axis(source)

    def run(machine: Machine) -> Array:
        return (_coordinate(machine.group, machine.grid, axis) * machine.block[axis]
                + _coordinate(machine.local_thread, machine.block, axis))
    return run


@op("gpu.block_dim")
def _block_dim(source: Operation, _: Kernel) -> Runner:
    axis = _axis(source)
    return lambda machine: np.full(1, machine.block[axis], np.int64)


@op("gpu.grid_dim")
def _grid_dim(source: Operation, _: Kernel) -> Runner:
    axis = _axis(source)
    return lambda machine: np.full(1, machine.grid[axis], np.int64)


@op("gpu.lane_id")
def _lane_id(source: Operation, _: Kernel) -> Runner:
    return lambda machine: machine.lane.astype(np.int64)


@op("gpu.subgroup_id")
def _subgroup_id(source: Operation, _: Kernel) -> Runner:
    return lambda machine: (machine.local_thread // machine.options.warp).astype(np.int64)


@op("gpu.subgroup_size")
def _subgroup_size(source: Operation, _: Kernel) -> Runner:
    return lambda machine: np.full(1, machine.options.warp, np.int64)


@op("gpu.num_subgroups")
def _num_subgroups(source: Operation, _: Kernel) -> Runner:
    return lambda machine: np.full(1, machine.warps_per_group, np.int64)


@op("gpu.barrier", "nvvm.barrier0", "rocdl.barrier", "rocdl.s.barrier", "amdgpu.lds_barrier")
def _barrier(source: Operation, _: Kernel) -> Runner:
    scope = source.attributes["scope"] if "scope" in source.attributes else None
    if scope is not None and "subgroup" in str(scope):
        return lambda machine: machine.warp_barrier()
    return lambda machine: machine.barrier()


@op("rocdl.wave.barrier")
def _wave_barrier(_: Operation, __: Kernel) -> Runner:
    return lambda machine: machine.warp_barrier()


@op("amdgpu.sched_barrier")
def _scheduling(_: Operation, __: Kernel) -> Runner:
    """Orders the code generator's work, not the threads'."""
    return lambda machine: None


def shuffled(machine: Machine, value: Array, from_lane: Array, valid: Array) -> Array:
    """Each thread's `value` of lane `from_lane` of its own warp; its own where not `valid`, poison from idle lanes."""
    value = np.broadcast_to(value, (machine.count, *value.shape[1:]))
    me = np.arange(machine.count)
    source = np.where(valid, me - machine.lane + from_lane, me)
    inside = (source >= 0) & (source < machine.count)
    source = np.where(inside, source, me)
    out = value[source].copy()
    idle = ~machine.mask[source] | ~inside
    if idle.any():
        out.reshape(machine.count, -1).view(np.uint8)[idle] = 0xFF
    return out


def shuffle_source(mode: str, lane: Array, offset: Array, width: Array) -> tuple[Array, Array]:
    """(lane to read, whether it lies in the segment of `width` lanes)."""
    first = lane - lane % width
    if mode == "xor":
        wanted = lane ^ offset
    elif mode == "idx":
        wanted = first + offset
    else:
        wanted = lane - offset if mode == "up" else lane + offset
    return wanted, (wanted >= first) & (wanted < first + width)


@op("gpu.shuffle")
def _shuffle(source: Operation, _: Kernel) -> Runner:
    mode = str(source.attributes["mode"]).removeprefix("#gpu<shuffle_mode ").rstrip(">")

    def run(machine: Machine, value: Array, offset: Array, width: Array) -> tuple[Array, Array]:
        lanes, valid = shuffle_source(mode, machine.lane, offset.astype(np.int64), width.astype(np.int64))
        return shuffled(machine, value, lanes, valid), valid
    return run


@op("gpu.ballot")
def _ballot(source: Operation, _: Kernel) -> Runner:
    dtype = dtype_of(source.result.type)

    def run(machine: Machine, condition: Array) -> Array:
        """A bit for each lane of the thread's warp that takes part and whose `condition` holds."""
        chosen = np.broadcast_to(condition, (machine.count,)).astype(np.bool_) & machine.mask
        votes = np.zeros(int(machine.local_warp.max()) + 1, np.uint64)
        np.bitwise_or.at(votes, machine.local_warp[chosen], np.uint64(1) << machine.lane[chosen].astype(np.uint64))
        return votes[machine.local_warp].astype(np.dtype(f"u{dtype.itemsize}")).view(dtype)
    return run


_REDUCTIONS: dict[str, Callable[..., Array]] = {
    "add": np.add, "mul": np.multiply, "minnumf": np.minimum, "maxnumf": np.maximum, "minimumf": np.minimum,
    "maximumf": np.maximum, "minsi": np.minimum, "maxsi": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor}


@op("gpu.subgroup_reduce")
def _subgroup_reduce(source: Operation, _: Kernel) -> Runner:
    kind = str(source.attributes["op"]).removeprefix("#gpu<all_reduce_op ").rstrip(">")
    function = _REDUCTIONS[kind]
    cluster = int(ir.IntegerAttr(source.attributes["cluster_size"]).value) if "cluster_size" in source.attributes else 0

    def run(machine: Machine, value: Array) -> Array:
        width = cluster or machine.options.warp
        value = np.broadcast_to(value, (machine.count, *value.shape[1:]))
        step = 1
        while step < width:
            partner = machine.lane ^ step
            value = function(value, shuffled(machine, value, partner, np.ones(machine.count, np.bool_)))
            step *= 2
        return value
    return run


@op("gpu.dynamic_shared_memory")
def _dynamic_shared(source: Operation, kernel: Kernel) -> Runner:
    dtype = dtype_of(source.result.type)

    def run(machine: Machine) -> MemRef:
        if "" not in machine.named:
            machine.named[""] = machine.allocate("dynamic shared memory", "workgroup", dtype, [machine.dynamic_shared])
        return machine.named[""]
    return run


@op("memref.get_global")
def _get_global(source: Operation, kernel: Kernel) -> Runner:
    name, type_ = str(source.attributes["name"]), source.result.type
    space, dtype, sizes = space_of(type_), dtype_of(type_), list(type_.shape)
    initial = kernel.global_value(name.removeprefix("@"), type_) if space == "global" else None

    def run(machine: Machine) -> MemRef:
        if name not in machine.named:
            machine.named[name] = initial or machine.allocate(name, space, dtype, sizes)
        return machine.named[name]
    return run


@op("gpu.printf", "gpu.assert")
def _ignored(source: Operation, _: Kernel) -> Runner:
    return lambda machine, *operands: ()


__all__ = ["expand", "shuffle_source", "shuffled"]
