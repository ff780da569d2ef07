"""What one lane of an AMD GPU waits with (`Chip.primitives`)."""

from __future__ import annotations

from xcc._mlir import ir


def barrier() -> None:
    """All threads of the workgroup have read and written LDS; accesses of global memory stay in flight."""
    ir.Operation.create("amdgpu.lds_barrier")


def lane_barrier() -> None:
    """All lanes of the wave have written."""
    ir.Operation.create("rocdl.wave.barrier")


def keep_order() -> None:
    """Keeps the code generator from moving instructions across this point."""
    none = ir.Attribute.parse("#rocdl<sched_group_mask none>")
    ir.Operation.create("amdgpu.sched_barrier", attributes={"opts": none})
