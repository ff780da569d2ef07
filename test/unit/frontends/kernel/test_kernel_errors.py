"""Errors of kernels name the place, both types and what to do; the line of each is marked here."""

from __future__ import annotations

import inspect
import math
import re
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xcc

X = xcc.f32


def shapes(x, y):
    y.store(0, x.tile(0, 4) + x.tile(0, 8))  # f32[4] + f32[8]: the shapes [4] and [8] do not broadcast


def no_power_of_two(x, y):
    y.store(0, x.tile(0, 100))  # the shape [100]: 100 is no power of two; take the next one, 128


def size_of_run(x, y):
    y.store(0, x.tile(0, x.shape[0]))  # known when the kernel is compiled


def bools(x, y):
    y.store(0, (x.tile(0, 4) > 0) * x.tile(0, 4))  # i1[4] * f32[4]: convert one to the type of the other


def bits_of_floats(x, y):
    y.store(0, x.tile(0, 4) & 1)  # & is for integers and bools


def shifted_float(x, y):
    y.store(0, x.tile(0, 4) << 1)  # << is for integers; use a * 2.0 ** b


def lambda_of_three(x, y):
    y.store(0, xcc.reduce(x.tile(0, 4), 0, lambda a, b, c: a))  # lambda_of_three.<locals>.<lambda>() missing 1


def modulo(x, y):
    y.store(0, x.tile(0, 4) % 2.0)  # use a - xcc.floor(a / b) * b


def signs(x, y):
    a, b = x.tile(0, 4).to(xcc.i32), x.tile(0, 4).to(xcc.ui32)
    y.store(0, a + b)  # i32[4] + ui32[4]: convert one to the type of the other, as in .to(xcc.i32)


def too_large(x, y):
    y.store(0, x.tile(0, 4).to(xcc.i8) + 300)  # 300 does not fit into i8


def product(x, y):
    a = x.tile(0, 16).reshape(4, 4)
    y.store(0, xcc.dot(a, a.to(xcc.f16)))  # dot(f32[4, 4], f16[4, 4])


def product_shapes(x, y):
    a = x.tile(0, 16).reshape(2, 8)
    y.store(0, xcc.dot(a, a))  # give tiles of shapes [m, k] and [k, n]


def accumulator(x, y):
    a = x.tile(0, 16).reshape(4, 4)
    y.store(0, xcc.dot(a, a, xcc.zeros((4, 4), xcc.f16)))  # begin with xcc.zeros([4, 4], xcc.f32)


def rank(x, y):
    y.store(0, x.tile((0, 0), (1, 4)))  # x: f32 array of 1 dims takes 1 offsets, not 2


def stored_rank(x, y):
    y.store(0, x.tile(0, 4)[:, None])  # takes tiles of 1 dims, not f32[4, 1]


def number_for_a_bool(c, y):
    y.store(0, c.tile(0, 32, other=0).to(xcc.f32))  # cannot hold the number 0: give False


def rounded(x, y):
    y.store(0, round(x.tile(0, 4), 2))  # to digits: round(t * 10.0**n) / 10.0**n


def fractions(x, y, i):
    i.store(0, x.tile(0, 4))  # cannot hold the fractions of f32[4]: convert it with .to(xcc.i32)


def float_offset(x, y):
    y.store(0, x.tile(x.tile(0, 1).sum(), 4))  # an offset is an integer, not f32 scalar


def float_index(x, y):
    y.store(0, x.gather(x.tile(0, 4)))  # indices are integers, not f32[4]


def axis(x, y):
    y.store(0, x.tile(0, 4).sum(axis=1))  # f32[4] has no axis 1


def condition(x, y):
    if x.tile(0, 4) > 0:  # a condition
        y.store(0, 1.0)


def truth(x, y):
    y.store(0, xcc.where(x.tile(0, 4), 1.0, 0.0))  # the condition is f32[4]: compare it


def python_list(x, y):
    values = [1, 2]
    y.store(0, x.tile(0, 4) + values)  # a list is no tile and no number


def sorted_pair(x, y):
    xcc.sort((x.tile(0, 4), xcc.arange(4)))  # a tuple is no tile and no number


def summed_array(x, y):
    y.store(0, xcc.cumsum(x))  # x: f32 array of 1 dims is no tile: read a tile of it


def whole_array(x, y):
    y.store(0, x + 1)  # read a tile of it


def indexed(x, y):
    y.store(0, x[0])  # is read with .tile(offsets, shape) or .gather(indices)


def element(x, y):
    y.store(0, x.tile(0, 4)[2])  # what lies at an index is read from an array


def power(x, y):
    y.store(0, x.tile(0, 4).to(xcc.i32) ** 17)  # the exponent of integers is one from -16 to 16


def other_tile(x, y):
    y.store(0, x.tile(0, 4, other=x.tile(0, 4)))  # `other` is a scalar, not f32[4]


def mask_without_other(x, y):
    y.store(0, x.tile(0, 4, mask=xcc.arange(4) < 2))  # a mask needs `other`


def type_name(x, y):
    y.store(0, x.tile(0, 4).to("float"))  # is no element type


def swapped_float(x, y):
    y.compare_swap(0, 0.0, 1.0)  # compare_swap is for integers of 32 and 64 bits, not for y: f32


def atomic_kind(x, y):
    y.atomic("mul", 0, 1.0)  # there is no atomic 'mul'


def numpy_function(x, y):
    y.store(0, np.exp(x.tile(0, 4)))  # numpy.exp is for arrays, not for f32[4]: use xcc's functions


def set_element(x, y):
    t = x.tile(0, 4)
    t[0] = 1.0  # nothing changes f32[4]: xcc.where(condition, a, b) makes another one


def method(x, y):
    y.store(0, x.tile(0, 4).mean())  # f32[4] has no .mean: tiles have .max, .min, .sum


def load(x, y):
    y.store(0, x.load(0, 4))  # x: f32 array of 1 dims has no .load: arrays have .tile, .store


def length(x, y):
    y.store(0, x.tile(0, 4) / len(x))  # is known when the kernel runs: use .shape[0]


def of_outside(x, y):
    y.store(0, x.tile(0, 4) * np.ones(4))  # arrays are arguments of the kernel, of which .tile() reads blocks


def gives(x, y):  # gives back f32[4], which nothing takes: write it to an array with .store()
    return x.tile(0, 4)


BOTH = (numpy_function, set_element, method, load, length, of_outside, gives, shapes, no_power_of_two, size_of_run,
        bools, bits_of_floats, shifted_float, modulo, signs, too_large, product, product_shapes,
        accumulator, rank, stored_rank, fractions, float_offset, float_index, axis, condition, truth, python_list,
        sorted_pair, summed_array, whole_array, indexed, element, power, rounded, other_tile,
        mask_without_other, type_name, atomic_kind, swapped_float, number_for_a_bool)


def grows(x, y):
    t = x.tile(0, 4)
    for i in range(x.shape[0]):
        y.store(i, t)  # 't' is not set here: it is f32[4] before the loop and f32[8] at the end of a turn
        t = x.tile(0, 8, other=0)


def one_branch(x, y):
    if x.shape[0] > 4:
        t = x.tile(0, 4)
    y.store(0, t)  # 't' is not set here: only one branch sets it


def branches(x, y):
    if x.shape[0] > 4:
        t = x.tile(0, 4)
    else:
        t = x.tile(0, 8)
    y.store(0, t)  # it is f32[4] in one branch and f32[8] in the other


def one_loop(x, y):
    for i in range(4):
        t = x.tile(i, 4)
    y.store(0, t)  # 't' is not set here: a loop sets it, which may have no turns


def set_ahead_of_a_break(x, y):
    for i in range(x.shape[0]):
        if x.gather(i) > 0:
            t = x.gather(i)
            break
    y.store(0, t)  # 't' is not set here: only one branch sets it


def two_names(x, y):
    a = b = [x.gather(0), x.gather(1)]
    for i in range(x.shape[0]):  # `a` and `b` are one list, which changes in place
        a[0] += i
        b[1] += a[0]
    y.store(0, a[1])


def name_of_outside(x, y):
    state, total = {"n": [0.0]}, 0.0
    inner = state["n"]
    while total < x.gather(0) + 9:  # `state` and `inner` are one list, which changes in place
        state["n"][0] += 1
        total += inner[0]
    y.store(0, total)


def name_of_the_next_turn(x, y):
    a, b = [0.0], [1.0]
    for i in range(x.shape[0]):  # `a` and `b` are one list, which changes in place
        a[0] += b[0] + i
        b = a
    y.store(0, a[0])


def two_names_in_a_branch(x, y):
    a = b = [x.gather(0), x.gather(1)]
    if x.gather(2) > 0:  # `a` and `b` are one list, which changes in place
        a[0] += 1
        b[1] += a[0]
    y.store(0, a[1])


def no_range(x, y):
    for i in x.shape[0]:  # an integer cannot be taken apart by Python: range() of it counts up to it
        y.store(i, 1.0)


def function_of_numbers(x, y):
    y.store(0, math.exp(x.tile(0, 4).max()))  # use .to(xcc.f32), and xcc.exp and others for math's


def counter(x, y):
    for i in range(x.shape[0]):
        y.store(i, 0.0)
    y.store(i, 1.0)  # a loop's counter is not known behind the loop


def broken(x, y):
    for i in range(x.shape[0]):  # a loop whose length is known when the kernel runs cannot have break
        with nullcontext():
            if i == 3:
                break


def left_in_with(x, y):
    for i in range(4):
        with nullcontext():
            if x.gather(i) == 0:  # and cannot decide about break, continue or return in a with or try statement
                break


def found_in(x):
    for i in range(x.shape[0]):
        if x.gather(i) == 0:
            return i


def sometimes_returned(x, y):
    y.store(0, found_in(x))  # what the function returns is not set here: it is a Tile in one branch and a NoneType


def as_shape(x, y):
    for i in range(1, 4):
        y.store(0, xcc.zeros(i))  # known when the kernel is compiled


def in_list(x, y):
    tiles = [x.tile(i, 4) for i in range(4)]
    for i in range(4):
        y.store(0, tiles[i])  # xcc.static_range() unrolls a loop


def escapes(x, y):
    tiles = []
    for i in range(4):
        tiles.append(x.tile(i, 4))
    y.store(0, tiles[0] + 1)  # this was made in a loop or branch of the program


def no_step(x, y):
    for i in range(4, 0, 0):  # the step is 0
        y.store(i, 1.0)


def longer(x, y):
    held = [1.0]
    for _ in range(x.shape[0]):
        held = [*held, 1.0]
    y.store(0, held[0])  # it is a list before the loop, of which a turn changes


def changes_globals(x, y):
    global X  # kernels change no variables outside of them
    X = x


def unknown_function(x, y):
    y.store(0, xcc.flip(x.tile(0, 4)))  # xcc has no flip: x.gather(last - xcc.arange(n)) reads a block from its end


def misspelt_function(x, y):
    y.store(0, xcc.sigmiod(x.tile(0, 4)))  # xcc has no sigmiod: is it xcc.sigmoid?


def unknown_type(x, y):
    y.store(0, x.tile(0, 4).to(xcc.float32))  # xcc has no float32: xcc.f32 is this type


if sys.argv is None:
    late = 0        # a name that is not there when the kernel is compiled


def unknown_name(x, y):
    for _ in range(x.shape[0]):
        y.store(0, late)  # name 'late' is not defined


def wrong_arguments(x, y):
    y.store(0, xcc.sort(x.tile(0, 4), axis=0))  # sort() got an unexpected keyword argument 'axis'


def halved(n):
    return n if n == 0 else halved(n // 2)  # functions call each other without end


def recursive(x, y):
    y.store(0, halved(xcc.program_id(0)))


def endless(x, y):
    i, k = 0, 0
    while i < 8:  # this loop is unrolled, since its condition is known when the kernel is compiled
        k += 1
    y.store(0, x.tile(0, 4) + k)


TRACED = (grows, endless, unknown_function, misspelt_function, unknown_type, unknown_name, wrong_arguments,
          lambda_of_three, one_branch, one_loop, set_ahead_of_a_break, no_range, function_of_numbers, branches, counter,
          two_names, name_of_outside, name_of_the_next_turn, two_names_in_a_branch,
          broken, left_in_with, sometimes_returned, as_shape, in_list, escapes,
          no_step, longer, changes_globals)


def printed(x, y):
    print("x", x.tile(0, 4))  # no target has a rule for it


def narrow_atomic(x, y, b):
    b.atomic_add(0, 1)  # there are no atomic updates of i8


COMPILED = (printed, narrow_atomic)


def launch(function: Any, mode: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("XCC_KERNEL", mode)
    arrays = {"x": np.ones(16, np.float32), "y": np.ones(16, np.float32), "i": np.ones(16, np.int32),
              "b": np.ones(16, np.int8), "c": np.ones(16, np.bool_)}
    given = {n: arrays[n] for n in inspect.signature(function).parameters}
    with pytest.raises(xcc.UserError) as caught:
        xcc.kernel(function)[1](**given)
    return str(caught.value)


def expected(function: Any) -> tuple[int, str]:
    """The marked line and what the message shall say."""
    lines, first = inspect.getsourcelines(function)
    at = next(i for i, line in enumerate(lines) if "  # " in line)
    return first + at, lines[at].split("  # ")[1].strip()


@pytest.mark.parametrize("function", (*BOTH, *TRACED, *COMPILED), ids=lambda f: f.__name__)
def test_place_and_message(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    line, words = expected(function)
    for mode in ("eager", "check") if function in BOTH else ("",) if function in COMPILED else ("check",):
        message = launch(function, mode, monkeypatch)
        assert re.match(rf"{re.escape(__file__)}:{line}:\d+: ", message), message
        assert words in message.splitlines()[0] and "^" in message.splitlines()[2], message


def test_functions_that_call_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    line, words = expected(halved)
    message = launch(recursive, "check", monkeypatch)
    assert message.startswith(f"{__file__}:{line}:") and words in message


def test_other_exceptions_are_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(x, BLOCK: xcc.constexpr):
        if BLOCK > 8:
            raise ValueError("blocks of up to 8")

    def in_a_library(x, BLOCK: xcc.constexpr):
        np.broadcast_shapes("a", BLOCK)

    monkeypatch.setenv("XCC_KERNEL", "check")
    with pytest.raises(ValueError, match="blocks of up to 8"):
        xcc.kernel(refuses)[1](np.ones(4, np.float32), 16)
    with pytest.raises(TypeError):
        xcc.kernel(in_a_library)[1](np.ones(4, np.float32), 16)


def test_what_stands_elsewhere_for_a_name() -> None:
    """No function of xcc's is said not to be there, and what stands for one is there."""
    import xcc.frontends.kernel.elsewhere as elsewhere

    assert not [name for name in elsewhere._ELSEWHERE if name in xcc._LAZY]
    named = re.findall(r"xcc\.(\w+)", " ".join(elsewhere._ELSEWHERE.values()))
    assert named and all(name in xcc._LAZY for name in named)


def test_the_line_is_shown_with_a_caret(monkeypatch: pytest.MonkeyPatch) -> None:
    for mode in ("eager", "check"):
        head, line, marks = launch(shapes, mode, monkeypatch).splitlines()
        column = int(head.split(":")[2])
        assert line.strip().startswith("y.store(0, x.tile(0, 4) + x.tile(0, 8))")
        marked = line[marks.index("^"):][:len(marks.strip())]
        assert marked == "x.tile(0, 4) + x.tile(0, 8)" and column == 16


def test_a_helper_is_the_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def outer(x, y):
        y.store(0, helper(x.tile(0, 4)))

    def helper(t):
        return t + xcc.zeros(8)  # do not broadcast

    line, words = expected(helper)
    for mode in ("eager", "check"):
        message = launch(outer, mode, monkeypatch)
        assert f":{line}:" in message and words in message


def test_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    @xcc.kernel
    def k(x, n, F: xcc.constexpr = 1):
        x.store(0, 1.0)

    x = np.zeros(4, np.float32)
    monkeypatch.setenv("XCC_KERNEL", "eager")
    with pytest.raises(xcc.UserError, match="anything else is a constant"):
        k[1]([1.0], 1)
    monkeypatch.setenv("XCC_KERNEL", "check")
    for match, call in (
            ("takes 3 arguments, not 4", lambda: k[1](x, 1, 2, 3)), ("no parameter 'm'", lambda: k[1](x, m=1)),
            ("'n' is missing", lambda: k[1](x)), ("given twice", lambda: k[1](x, 1, x=2)),
            ("needs a grid", lambda: k(x, 1)), ("is not one to three numbers", lambda: k[1, 1, 1, 1](x, 1)),
            ("which kernels have no type for", lambda: k[1](np.zeros(4, "c8"), 1)),
            ("an array of no dims: give x.reshape", lambda: k[1](np.zeros(()), 1)),
            ("anything else is a constant", lambda: k[1](x, [1])), ("give tuples for lists", lambda: k[1](x, 1, F=[]))):
        with pytest.raises(xcc.UserError, match=match):
            call()
    with pytest.raises(xcc.UserError, match="is no parameter of a kernel"):
        xcc.kernel(lambda **x: None)
    with pytest.raises(xcc.UserError, match="'x' in front of '/' is no parameter"):
        xcc.kernel(lambda x, /: None)

    @xcc.kernel
    def named(x, *, n=2):
        x.store(0, n)

    for mode in ("eager", "check"):
        monkeypatch.setenv("XCC_KERNEL", mode)
        named[1](x, n=3 if mode == "eager" else 4)
        assert x[0] == (3 if mode == "eager" else 4)
    monkeypatch.setenv("XCC_KERNEL", "fast")
    with pytest.raises(xcc.UserError, match="XCC_KERNEL is 'fast': it can be"):
        k[1](x, 1)


def test_outside_of_a_kernel() -> None:
    with pytest.raises(xcc.UserError, match="this is for use in kernels"):
        xcc.zeros(4)


def test_no_traceback_of_xcc(tmp_path: Path) -> None:
    """What a script prints: its own frame, the launch, the message."""
    script = tmp_path / "k.py"
    script.write_text("import numpy, xcc\n\n@xcc.kernel\ndef k(x):\n    x.store(0, xcc.zeros(3))\n\n"
                      "k[1](numpy.zeros(4, 'f4'))\n")
    done = subprocess.run([sys.executable, str(script)], text=True, capture_output=True)
    assert done.returncode == 1
    assert done.stderr.count("  File ") <= 2 and f"{script}:5:16: the shape [3]" in done.stderr


def test_numbers_of_numpy_and_matrix_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """What numpy leaves to tiles, and ``@``; hasattr() is told of what there is not."""
    def k(x, y):
        a = np.float32(2) * x.tile(0, 16).reshape(4, 4)
        assert not hasattr(a, "mean") and not hasattr(x, "load")
        y.store(0, (a @ a.T).reshape(16))

    x = np.arange(16, dtype=np.float32)
    for mode in ("eager", "check"):
        monkeypatch.setenv("XCC_KERNEL", mode)
        y = np.zeros_like(x)
        xcc.kernel(k)[1](x, y)
        np.testing.assert_allclose(y, (4 * x.reshape(4, 4) @ x.reshape(4, 4).T).reshape(-1))
