"""What packing on the fly reckons with, where it is chosen ahead of kernels and in them."""

from __future__ import annotations

from xcc.targets.base import Chip

ROWS_PART = 196608      # elements of a product's left operand that may stay in the L2 cache
STACK = 1 << 19         # bytes of panels on a thread's stack
DOT_ROWS = 24            # of a product whose columns lie along its sum: more take as long as it takes to turn these,
DOT_STEPS = 256         # and as many steps pay for adding up the lanes of each result
TURNED = 16             # steps that are turned together, as many columns or a vector of them
TILE_GROUPS = 16        # of a row of a tile register
FILLED_GROUPS = 16      # columns that a step multiplies a row with in the time that a group of the row is copied
PANELS = 4              # the part of the L2 cache that is for panels, of which there are two


def panel_steps(chip: Chip, wide: int) -> int:
    """Steps of a panel of `wide` bytes a step, at most: longer sums are made in blocks."""
    return chip.l2_bytes // PANELS // (2 * wide)


def tile_step(groups: int) -> int:
    """Of the sums of a product in tile registers so many groups are multiplied at once; all steps are of one size."""
    return max(n for n in range(1, TILE_GROUPS + 1) if groups % n == 0)


def tile_groups(groups: int, columns: int = 0) -> int:
    """`groups` and as many of zeros as leave the fewest steps, where these are half as many or less, or where it takes
    longer to multiply the others with so many `columns` than to copy a row for its zeros."""
    filled = min(range(groups, groups + TILE_GROUPS), key=lambda n: (n // tile_step(n), n))
    steps, fewer = groups // tile_step(groups), filled // tile_step(filled)
    return filled if 2 * fewer <= steps or (steps - fewer) * columns >= FILLED_GROUPS * groups else groups
