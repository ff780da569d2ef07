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
from xcc.frontends.kernel.joining import Undefined, Unreturned, entered, fitted, joined, settle
from xcc.frontends.kernel.loop_variables import Variables
from xcc.frontends.kernel.machine import BuildingMachine, machine, running_on
from xcc.frontends.kernel.place import error
from xcc.frontends.kernel.shared_names import SharedNames
from xcc.frontends.kernel.tile import Tile, as_tile, binary, stretch
from xcc.frontends.kernel.trees import fresh, leaves, paths, put_back, rebuilt, structure
from xcc.frontends.kernel.types import NUMBER_INT, TileType

__all__ = ["Undefined", "Unreturned", "and_", "assert_", "callee", "choose", "for_", "if_", "not_", "or_", "plain",
           "plain_loop", "while_"]
UNROLLED = 4096     # turns of a while loop that is Python's own

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
        checks = list(map(SharedNames(values, names, then, orelse).watched, (one, other)))
        made = tuple(then(*one)), tuple(orelse(*other))
        for check in checks:
            check(())
        sides = _returned(made[0], made[1]), _returned(made[1], made[0])
    kinds = [a if a == b else None for a, b in (map(structure, pair) for pair in zip(*sides, strict=True))]
    results = [joined(p, a, b) for n, s, x, y in zip(names, kinds, *sides, strict=True)
               for p, a, b in zip(paths(n, s), leaves(x, s), leaves(y, s), strict=True)]
    carried = _carried(results)

    def side(branch: Body, beside: Sequence[object]) -> Callable[[], list[Tile]]:
        def run() -> list[Tile]:
            own = _returned(branch(*fresh(values)), beside)
            made = [leaf for v, s in zip(own, kinds, strict=True) for leaf in leaves(v, s)]
            return [fitted(made[i], t) for i, t in carried.items()]

        return run

    data = _builder().branch(condition, list(carried.values()), side(then, sides[1]), side(orelse, sides[0]))
    return [put_back(old, new) if a is x and b is y else new for old, new, a, b, x, y in zip(
        values, rebuilt(kinds, entered(results, carried, data)), one, other, *sides, strict=True)]


def _carried(values: Sequence[object]) -> dict[int, TileType]:
    """Which variables the run decides, and the type that each has."""
    return {i: v for i, v in enumerate(values) if isinstance(v, TileType)}


def _returned(values: Sequence[object], beside: Sequence[object]) -> tuple[object, ...]:
    """`values`, where what is not returned is something like what `beside` returns."""
    return tuple(_blank(b) if isinstance(v, Unreturned) else v for v, b in zip(values, beside, strict=True))


def _blank(value: object) -> object:
    """Zeros in the place of tiles."""
    def leaf(x: object) -> object:
        return stretch(Tile(x.type.shaped(()), None, 0), x.shape) if isinstance(x, Tile) else x

    kind = structure(value)
    return rebuilt([kind], [leaf(x) for x in leaves(value, kind)])[0]


def for_(iterable: Iterable[object], body: Body, values: Sequence[object], names: Sequence[str], targets: int,
         flag: str) -> Sequence[object]:
    """``for``: the first `targets` of `names` are what it counts with; `flag` says that a turn was the last one."""
    if isinstance(iterable, Tile):
        iter(iterable)
    if not isinstance(iterable, DeviceRange):
        return _each(iterable, body, values, names, flag)
    unset = (Undefined(n, "a loop's counter is not known behind the loop") for n in names[:targets])
    values = [*unset, *values[targets:]]

    def first(*own: object) -> tuple[object, ...]:
        return body(iterable.element(Tile(NUMBER_INT, None)), *own)

    held = Variables(_returned_by(first, values), names, body)

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
    left = held.names.index(flag) if flag else -1
    if left not in carried:
        return held.behind(entered(state, carried, _builder().loop(*iterable.bounds(), entries, run)))
    return held.behind(entered(state, carried, _until(iterable, list(carried).index(left), entries, run)))


def _until(iterable: DeviceRange, left: int, entries: Sequence[Tile],
           run: Callable[[object, Sequence[object]], list[Tile]]) -> Sequence[object]:
    """A loop over a range whose turn is the last one if number `left` of its results holds."""
    begin, end, step = iterable.bounds()

    def ask(data: Sequence[object]) -> Tile:
        return binary("and", binary("lt", Tile(NUMBER_INT, data[0]), end), ~Tile(entries[left].type, data[1 + left]))

    def turn(data: Sequence[object]) -> list[Tile]:
        return [fitted(binary("add", Tile(NUMBER_INT, data[0]), step), NUMBER_INT), *run(data[0], data[1:])]

    return _builder().repeat([fitted(begin, NUMBER_INT), *entries], ask, turn)[1:]


def _each(items: Iterable[object], body: Body, values: Sequence[object], names: Sequence[str], flag: str,
          ) -> Sequence[object]:
    """A turn for each of the items; where the run knows whether one was the last, the others are a branch."""
    rest = iter(items)
    for item in rest:
        values = body(item, *values)
        left = values[names.index(flag)] if flag else False
        if _of_run(left):
            def others(*own: object, items: Sequence[object] = tuple(rest)) -> tuple[object, ...]:
                return tuple(_each(items, body, own, names, flag))

            return if_(left, lambda *own: own, others, values, names)
        if left:
            break
    return values


def _returned_by(body: Body, values: Sequence[object]) -> Sequence[object]:
    """The variables of a loop, where what is not returned is something like what a turn of it returns."""
    if not any(isinstance(v, Unreturned) for v in values):
        return values
    with running_on(DryMachine()):
        made = body(*fresh(values))
    return _returned(values, made)


def while_(test: Callable[..., object], body: Body, values: Sequence[object], names: Sequence[str], flag: str,
           ) -> Sequence[object]:
    """``while``; `flag` says that a turn was the last one."""
    def left(values: Sequence[object]) -> object:
        return values[names.index(flag)] if flag else False

    turns = 0
    while not _of_run(more := _dry(test, values)) and not _is_decided_by_run(more, test, body, values, left):
        if not more:
            return values
        turns += 1
        if turns > UNROLLED:
            raise error("this loop is unrolled, since its condition is known when the kernel is compiled, and goes on "
                        f"after {UNROLLED} turns")
        values = body(*values)
        if left(values):
            return values
    held = Variables(_returned_by(body, values), names, body)

    def asked(given: Sequence[object]) -> Tile:
        whole = held.whole(given)
        if not _of_run(left(whole)):
            return _condition(test(*whole))
        return _condition(choose(left(whole), lambda: False, lambda: test(*whole)))

    def dry(given: Sequence[object]) -> Sequence[object]:
        with running_on(DryMachine()):
            asked(given)
            return held.turn(body, given)

    state = settle(held.values, held.names, dry)
    carried = _carried(state)

    def ask(data: Sequence[object]) -> Tile:
        return asked(entered(state, carried, data))

    def run(data: Sequence[object]) -> list[Tile]:
        made = held.turn(body, entered(state, carried, data))
        return [fitted(made[i], t) for i, t in carried.items()]

    entries = [fitted(held.values[i], t) for i, t in carried.items()]
    return held.behind(entered(state, carried, _builder().repeat(entries, ask, run)))


def _dry(function: Callable[..., object], values: Sequence[object]) -> object:
    """What a function gives, for its type."""
    with running_on(machine() if machine().concrete else DryMachine()):
        return function(*values)


def _is_decided_by_run(more: object, test: Callable[..., object], body: Body, values: Sequence[object],
                       left: Callable[[Sequence[object]], object]) -> bool:
    """Whether the run knows if there is a turn behind the one that there is, if there is `more`."""
    if not more or machine().concrete:
        return False
    with running_on(DryMachine()):
        behind = body(*fresh(values))
        return _of_run(left(behind)) or (not left(behind) and _of_run(test(*behind)))


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
    """The condition of a branch, or of a loop, that is left from within a ``with`` or ``try``."""
    if _of_run(test):
        raise error("this is known when the kernel runs, and cannot decide about break, continue or return in a with "
                    "or try statement: put them outside of it")
    return test


def plain_loop(iterable: object) -> object:
    """What a loop goes through that is left from within a ``with`` or ``try``."""
    if isinstance(iterable, DeviceRange) and not iterable.known:
        raise error("a loop whose length is known when the kernel runs cannot have break, continue or return in a with "
                    "or try statement: put them outside of it")
    return iterable


