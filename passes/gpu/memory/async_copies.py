"""A thread's asynchronous copies from global to shared memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from xcc._mlir import Value, arith_d, ir
from xcc.passes.gpu.layout.linear import Layout
from xcc.passes.gpu.layout.registers import guarded
from xcc.passes.shared.values import index

if TYPE_CHECKING:
    from xcc.passes.gpu.thread.kernel_builder import KernelBuilder

AsyncCopy = tuple[list[int], Any, list[Any], Any]   # registers, memref, indices, test or None


def copy_async(k: KernelBuilder, parts: Callable[[], list[AsyncCopy]], to: tuple[Value, Layout, Value], width: int,
               size: int, every: Value | None = None, cached: bool = False) -> None:
    """Asynchronous copies of `width` elements to (buffer, offsets, start) where `every` holds; `cached`: by way of the
    L1 cache, which joins the halves of a sector that two lanes copy."""
    buffer, offsets, start = to
    token = ir.Type.parse("!nvgpu.device.async.token")
    attributes = {"dstElements": ir.IntegerAttr.get(ir.IndexType.get(), width)}
    if width * size == 16 and not cached:
        attributes["bypassL1"] = ir.UnitAttr.get()

    def copy() -> None:
        for group, memref, indices, test in parts():
            at = k.code.offset_of(offsets, group[0], start=start)
            tests = [x for x in (every, test) if x is not None]
            limit = [arith_d.select(all_of(tests), index(width), index(0))] if tests else []
            ir.Operation.create(
                "nvgpu.device_async_copy", results=[token], operands=[buffer, at, memref, *indices, *limit],
                attributes={**attributes,
                            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, 1, len(indices), len(limit)])})

    guarded(k.code.first_copy(offsets), copy)


def all_of(tests: list[Value]) -> Value:
    """Whether all `tests` hold, of which there is one at least."""
    joined = tests[0]
    for t in tests[1:]:
        joined = arith_d.andi(joined, t)
    return joined
