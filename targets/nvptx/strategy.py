"""Tile sizes for nvptx: what the GPU targets share, until a chip needs its own."""

from xcc.targets.gpu_strategy import configure, few_rows

__all__ = ["configure", "few_rows"]
