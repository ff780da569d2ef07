"""The tile dialect: programs over blocks of values, which run once for each place of a grid.

    from xcc.dialects import tile

    with xcc.context.new_context(), ir.Location.unknown():
        ...
        t = tile.load(x, zero, row, column, shape=(1, 1024))

Every op has a builder of its name; Python keywords take a trailing underscore (``tile.assert_``). ``tile.OPS`` maps op
names to classes. Programs are better made with :mod:`xcc.tile`, which knows operators, dtypes and places in source
files. """

import importlib
from typing import Any

from xcc.dialects.tile.op import BUILDERS, OPS, TileOp, attrs_of, build, op_class, operands_of, problem_of
from xcc.dialects.tile.program import Parameter, grid_of, is_program, parameters_of, programs_in, verify
from xcc.dialects.tile.types import TileType

FAMILIES = ("control", "memory", "compute", "shape")

for _family in FAMILIES:
    importlib.import_module(f"xcc.dialects.tile.{_family}")

__all__ = ["FAMILIES", "OPS", "Parameter", "TileOp", "TileType", "attrs_of", "build", "grid_of", "is_program",
           "op_class", "operands_of", "parameters_of", "problem_of", "programs_in", "verify"]


def __getattr__(name: str) -> Any:
    """The builder of an op; its name may have a trailing underscore."""
    try:
        return BUILDERS[name.removesuffix("_")]
    except KeyError:
        raise AttributeError(f"the tile dialect has no op '{name}'") from None
