"""The Python code of calls that repeat the one before: what is left to do of such a call, written out.

Loops over arguments, and functions for what the devices do differently, would take longer than the rest of a small
model's call. With two parameters, an input and an output, on a CPU:

    def repeat(given):
        if given[0].data_ptr() != k0 or given[2].data_ptr() != k2: return None
        t1 = given[1]
        p1 = t1.data_ptr()
        if not t1.is_contiguous(): return None
        r0 = empty(s0, e0, d0)
        q0 = r0.data_ptr()
        ...                             # starts the program
        return [r0]
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import CodeType
from typing import Any

from xcc.frontends.torch.known_addresses import KnownAddresses, compares

__all__ = ["Repeat", "make_repeat", "repeat_code"]

Repeat = Callable[[list[Any]], list[Any] | None]
_MANY = 8       # static tensors whose addresses are compared at once in less time than by code for each


def repeat_code(static: Sequence[int], moving: Sequence[tuple[int, Sequence[int]]], own: Sequence[int], outputs: int,
                device: Sequence[str], start: Callable[[Sequence[str]], Sequence[str]]) -> CodeType:
    """Code that defines ``repeat(given)``, which returns None where it has started nothing.

    static: places among `given` of tensors whose addresses are to be the numbers ``k<place>`` (many are compared in one
    call, xcc.frontends.torch.known_addresses). moving: of others, with the order in memory of their dims, () for the
    usual. own: which of the `outputs` are made with ``empty(s<n>, e<n>, d<n>)``, shape, strides and type; the others
    are None. device: what must not be true, of a tensor ``{t}`` and its address ``{p}``; where it names neither, asked
    once. start: the lines that run the program on the addresses, given as expressions: those of `moving`, then `own`.
    """
    lines = [f"if {test}: return None" for test in device if "{" not in test]
    if _compared_at_once(static):
        lines.append("if not lie_at(given, known): return None")
    elif static:
        lines.append(f"if {' or '.join(f'given[{n}].data_ptr() != k{n}' for n in static)}: return None")
    for n, order in moving:
        dense = f"t{n}.permute({tuple(order)}).is_contiguous()" if order else f"t{n}.is_contiguous()"
        tests = [*(test.format(t=f"t{n}", p=f"p{n}") for test in device if "{" in test), f"not {dense}"]
        lines += [f"t{n} = given[{n}]", f"p{n} = t{n}.data_ptr()", f"if {' or '.join(tests)}: return None"]
    for n in own:
        lines += [f"r{n} = empty(s{n}, e{n}, d{n})", f"q{n} = r{n}.data_ptr()"]
    lines += start([*(f"p{n}" for n, _ in moving), *(f"q{n}" for n in own)])
    lines.append(f"return [{', '.join(f'r{n}' if n in own else 'None' for n in range(outputs))}]")
    return compile("\n    ".join(["def repeat(given):", *lines]) + "\n", "<xcc repeat>", "exec")


def make_repeat(code: CodeType, known: Mapping[int, int], forms: Sequence[tuple[int, Any, Any, Any]],
                names: Mapping[str, Any]) -> Repeat:
    """The function of `code`: with the addresses `known` of static tensors, by place, outputs of the `forms` (number,
    shape, strides, type), and what else the code `names`."""
    space: dict[str, Any] = {f"k{n}": address for n, address in known.items()}
    if _compared_at_once(known):
        addresses = KnownAddresses(known)
        space |= {"lie_at": compares(), "known": addresses.table, "known_addresses": addresses}
    for n, *form in forms:
        space |= zip((f"s{n}", f"e{n}", f"d{n}"), form, strict=True)
    assert not space.keys() & names.keys()
    space |= names
    exec(code, space)
    made: Repeat = space.pop("repeat")      # else it and its names would be a cycle, and what they hold would stay
    return made


def _compared_at_once(static: Collection[int]) -> bool:
    return len(static) >= _MANY and compares() is not None
