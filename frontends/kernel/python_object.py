"""What Python asks of a tile as of any object: numbers and truth where they are known, else what to write instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xcc.frontends.kernel.machine import machine
from xcc.frontends.kernel.place import error, no_attribute
from xcc.frontends.kernel.types import TileType

if TYPE_CHECKING:
    from xcc.frontends.kernel.tile import Tile

__all__ = ["PythonObject"]


class PythonObject:
    """A tile's answers."""

    __slots__ = ("type",)
    type: TileType

    @property
    def data(self) -> Any:
        """What the machine has of it."""
        raise NotImplementedError

    def __bool__(self) -> bool:
        return bool(self._number("a condition", "use xcc.where(), or .any() or .all() of it"))

    def __index__(self) -> int:
        if not self.type.dtype.is_integer:
            raise error(f"{self.type} is no integer")
        return int(self._number("an index of Python's", "it is known when the kernel runs, not when it is compiled: "
                                "a tile's shape takes numbers and xcc.constexpr, xcc.static_range() unrolls a loop"))

    def __int__(self) -> int:
        return int(self._number("a number of Python's", "use .to(xcc.i32)"))

    def __float__(self) -> float:
        return float(self._number("a number of Python's", "use .to(xcc.f32), and xcc.exp and others for math's"))

    def _number(self, what: str, instead: str) -> Any:
        if self.type.shape or not machine().concrete:
            raise error(f"{self.type} cannot be {what}: {instead}")
        return self.data.item()

    def __pow__(self, exponent: object) -> Tile:
        from xcc.frontends.kernel.functions import power

        return power(self, exponent)

    def __rpow__(self, base: object) -> Tile:
        from xcc.frontends.kernel.functions import power

        return power(base, self)

    def __round__(self, digits: int = 0) -> Tile:
        from xcc.frontends.kernel.functions import to_even

        if digits:
            raise error(f"round of {self.type} to digits: round(t * 10.0**n) / 10.0**n")
        return to_even(self)

    def __iter__(self) -> Any:
        instead = "use operations on the whole tile" if self.type.shape else "range() of it counts up to it"
        raise error(f"{self.type} cannot be taken apart by Python: {instead}")

    def __getattr__(self, name: str) -> Any:
        raise no_attribute(self.type, name, "tiles have .max, .min, .sum, .prod, .any, .all, .to, .bitcast, .reshape, "
                           ".broadcast_to and .T; functions are xcc's, such as xcc.exp(t)")

    def __setitem__(self, at: Any, value: Any) -> None:
        raise error(f"nothing changes {self.type}: xcc.where(condition, a, b) makes another one")
