"""Where a program instance is, what regions give, and what says something."""

from typing import Any

import numpy as np

from xcc.dialects.tile.op import Attrs, InferError, TileOp
from xcc.dialects.tile.types import TileType
from xcc.dialects.xt.fields import integer, operand, text, variadic


class _OfGrid(Attrs):
    """What ops share that ask for the grid; the evaluation gives them its numbers in place of operands."""

    def infer(a: Attrs) -> TileType:
        if not 0 <= a.axis < 3:
            raise InferError(f"axis {a.axis}: a grid has three")
        return TileType((), "index")

    def evaluate(a: Attrs, numbers: Any) -> Any:
        return np.int64(numbers[a.axis])


class ProgramId(_OfGrid, TileOp, name="program_id"):
    """The number of this instance of the program along `axis` of the grid, from 0 on."""

    axis = integer()


class NumPrograms(_OfGrid, TileOp, name="num_programs"):
    """How many instances there are along `axis` of the grid."""

    axis = integer()


class Yield(TileOp, name="yield"):
    """Ends a region and gives its results."""

    values = variadic()
    result_names = ()

    def infer(a: Attrs, values: tuple[TileType, ...]) -> None:
        return None


class Assert(TileOp, name="assert"):
    """All elements of `condition` are true: an evaluation ends with `message` where one is not. Compiled code does not
    look."""

    result_names = ()
    condition = operand()
    message = text("")

    def infer(a: Attrs, condition: TileType) -> None:
        if condition.dtype != "i1":
            raise InferError(f"the condition is {condition}, no i1")

    def evaluate(a: Attrs, condition: Any) -> Any:
        return bool(np.all(condition))


class Print(TileOp, name="print"):
    """Writes `prefix` and the values, a line an instance. An evaluation does; no target has a rule for it."""

    result_names = ()
    values = variadic()
    prefix = text("")

    def infer(a: Attrs, values: tuple[TileType, ...]) -> None:
        return None

    def evaluate(a: Attrs, values: Any) -> str:
        return " ".join([a.prefix, *(np.array2string(np.asarray(v), threshold=64) for v in values)]).strip()
