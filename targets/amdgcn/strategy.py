"""Tile sizes for amdgcn: what the GPU targets share, until a chip needs its own."""

from xcc.targets.gpu_strategy import configure

__all__ = ["configure"]
