"""What packing on the fly reckons with, where it is chosen ahead of kernels and in them."""

from __future__ import annotations

from xcc.targets.base import Chip

ROWS_PART = 196608      # elements of a product's left operand that may stay in the L2 cache
STACK = 1 << 19         # bytes of panels on a thread's stack
TURNED = 16             # steps that are turned together, as many columns or a vector of them
PANELS = 4              # the part of the L2 cache that is for panels, of which there are two


def panel_steps(chip: Chip, wide: int) -> int:
    """Steps of a panel of `wide` bytes a step, at most: longer sums are made in blocks."""
    return chip.l2_bytes // PANELS // (2 * wide)
