"""What one thread of an NVIDIA GPU waits with (`Chip.primitives`)."""

from __future__ import annotations

from xcc._mlir import arith_d, gpu_d, ir


def barrier() -> None:
    """All threads of the workgroup have read and written shared memory."""
    gpu_d.barrier()


def lane_barrier() -> None:
    """All lanes of the warp have written."""
    all_lanes = arith_d.constant(ir.IntegerType.get_signless(32), -1)
    ir.Operation.create("nvvm.bar.warp.sync", operands=[all_lanes])


def keep_order() -> None:
    """Nothing: ptxas orders by latency."""
