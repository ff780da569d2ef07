"""What the calls do that :mod:`xcc.frontends.kernel.transform` puts in the place of control flow.

Where a condition or a range is a number of Python's, it is Python's control flow. Else both branches, or the body once,
are run for the types that come out, then again on the machine, which makes an operation of them.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Sequence
from typing import TypeGuard, cast

from xcc.frontends.kernel.callees import DeviceRange, callee
from xcc.frontends.kernel.dry import DryMachine
from xcc.frontends.kernel.joining import Undefined, entered, fitted, joined, settle
from xcc.frontends.kernel.machine import BuildingMachine, machine, running_on
from xcc.frontends.kernel.place import error
from xcc.frontends.kernel.tile import Tile, as_tile, binary
from xcc.frontends.kernel.trees import Variables, fresh, leaves, paths, put_back, rebuilt, structure
from xcc.frontends.kernel.types import NUMBER_INT, TileType

__all__ = ["Undefined", "and_", "assert_", "callee", "choose", "for_", "if_", "not_", "or_", "plain", "plain_loop",
           "while_"]

Body = Callable[..., tuple[object, ...]]


def _of_run(value: object) -> TypeGuard[Tile]:
    return isinstance(value, Tile) and not machine().concrete


def _builder() -> BuildingMachine:
    return cast(BuildingMachine, machine())


def _condition(given: object) -> Tile:
    """A condition of the run's; of a number, whether it is not 0."""
    test = as_tile(given)
    return _bool(test if test.shape or test.dtype.kind == "bool" else binary("ne", test, 0))


def _bool(given: object) -> Tile:
    test = as_tile(given)
    if test.shape or test.dtype.kind != "bool":
        raise error(f"a condition is one bool, not {test.type}: "
                    + ("use .any() or .all() of it, or xcc.where()" if test.shape else "compare it, as in n != 0"))
    return test


def if_(test: object, then: Body, orelse: Body, values: Sequence[object], names: Sequence[str]) -> Sequence[object]:
    """``if``: the values of the variables `names` behind it."""
    if not _of_run(test):
        return (then if test else orelse)(*values)
    condition = _condition(test)
    with running_on(DryMachine()):
        one, other = fresh(values), fresh(values)
        sides = tuple(then(*one)), tuple(orelse(*other))
    kinds = [a if a == b else None for a, b in (map(structure, pair) for pair in zip(*sides, strict=True))]
    results = [joined(p, a, b) for n, s, x, y in zip(names, kinds, *sides, strict=True)
               for p, a, b in zip(paths(n, s), leaves(x, s), leaves(y, s), strict=True)]
    carried = _carried(results)

    def side(branch: Body) -> Callable[[], list[Tile]]:
        def run() -> list[Tile]:
            made = [leaf for v, s in zip(branch(*fresh(values)), kinds, strict=True) for leaf in leaves(v, s)]
            return [fitted(made[i], t) for i, t in carried.items()]

        return run

    data = _builder().branch(condition, list(carried.values()), side(then), side(orelse))
    return [put_back(old, new) if a is x and b is y else new for old, new, a, b, x, y in zip(
        values, rebuilt(kinds, entered(results, carried, data)), one, other, *sides, strict=True)]


def _carried(values: Sequence[object]) -> dict[int, TileType]:
    """Which variables the run decides, and the type that each has."""
    return {i: v for i, v in enumerate(values) if isinstance(v, TileType)}


def for_(iterable: Iterable[object], body: Body, values: Sequence[object], names: Sequence[str], targets: int,
         ) -> Sequence[object]:
    """``for``: the first `targets` of `names` are what it counts with."""
    if isinstance(iterable, Tile):
        iter(iterable)
    if not isinstance(iterable, DeviceRange):
        for item in iterable:
            values = body(item, *values)
        return values
    unset = (Undefined(n, "a loop's counter is not known behind the loop") for n in names[:targets])
    held = Variables([*unset, *values[targets:]], names)

    def turn(counter: object, given: Sequence[object]) -> Sequence[object]:
        return held.turn(lambda *own: body(iterable.element(Tile(NUMBER_INT, counter)), *own), given)

    def dry(given: Sequence[object]) -> Sequence[object]:
        with running_on(DryMachine()):
            return turn(None, given)

    state = settle(held.values, held.names, dry, skip=targets)
    carried = _carried(state)

    def run(counter: object, data: Sequence[object]) -> list[Tile]:
        made = turn(counter, entered(state, carried, data))
        return [fitted(made[i], t) for i, t in carried.items()]

    entries = [fitted(held.values[i], t) for i, t in carried.items()]
    return held.behind(entered(state, carried, _builder().loop(*iterable.bounds(), entries, run)))


def while_(test: Callable[..., object], body: Body, values: Sequence[object], names: Sequence[str]) -> Sequence[object]:
    """``while``."""
    with running_on(DryMachine()) if not machine().concrete else running_on(machine()):
        first = test(*values)
    if not _of_run(first):
        while test(*values):
            values = body(*values)
        return values

    held = Variables(values, names)

    def dry(given: Sequence[object]) -> Sequence[object]:
        with running_on(DryMachine()):
            _condition(test(*held.whole(given)))
            return held.turn(body, given)

    state = settle(held.values, held.names, dry)
    carried = _carried(state)

    def ask(data: Sequence[object]) -> Tile:
        return _condition(test(*held.whole(entered(state, carried, data))))

    def run(data: Sequence[object]) -> list[Tile]:
        made = held.turn(body, entered(state, carried, data))
        return [fitted(made[i], t) for i, t in carried.items()]

    entries = [fitted(held.values[i], t) for i, t in carried.items()]
    return held.behind(entered(state, carried, _builder().repeat(entries, ask, run)))


def assert_(test: object, message: Callable[[], object] = lambda: "") -> None:
    """``assert``: of a number when the kernel is compiled, else when it runs."""
    if isinstance(test, Tile):
        if test.dtype.kind != "bool":
            raise error(f"an assertion is a bool, not {test.type}: compare it, as in t != 0")
        machine().check(test, str(message()))
    elif not test:
        raise error(f"the assertion does not hold{': ' if message() else ''}{message()}")


def and_(*sides: Callable[[], object]) -> object:
    """``and``: of values of the run both sides are evaluated."""
    return _chain("and", sides, lambda value: not value)


def or_(*sides: Callable[[], object]) -> object:
    """``or``."""
    return _chain("or", sides, bool)


def _chain(name: str, sides: Sequence[Callable[[], object]], ends: Callable[[object], bool]) -> object:
    result = sides[0]()
    for side in sides[1:]:
        if not _of_run(result):
            if ends(result):
                return result
            result = side()
            continue
        other = side()
        if not _of_run(other):
            other = builtins.bool(other)
        result = binary(name, _bool(result), other)
    return result


def not_(value: object) -> object:
    """``not``."""
    return ~_condition(value) if _of_run(value) else not value


def choose(test: object, then: Callable[[], object], orelse: Callable[[], object]) -> object:
    """``a if test else b``."""
    if not _of_run(test):
        return then() if test else orelse()
    return if_(test, lambda _old: (then(),), lambda _old: (orelse(),), (None,), ("the value",))[0]


def plain(test: object) -> object:
    """The condition of a branch that leaves a loop, or of a loop that is left."""
    if _of_run(test):
        raise error("this is known when the kernel runs, and cannot decide about break or a return in a "
                    "loop: put it into the condition of a while loop")
    return test


def plain_loop(iterable: object) -> object:
    """What a loop goes through that is left before its end, or has an else."""
    if isinstance(iterable, DeviceRange) and not iterable.known:
        raise error("a loop whose length is known when the kernel runs cannot have break, return or else: "
                    "use a while loop")
    return iterable


