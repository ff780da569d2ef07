"""Plans that the model's own code makes are those of xcc.runtime.arena."""

from __future__ import annotations

import ctypes
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_arena import chain, random_program
from test_symbolic import dims

from xcc.runtime.arena import ArenaPlanner
from xcc.runtime.dim_values import DimValues
from xcc.runtime.library import load_library
from xcc.runtime.native_plan import NativePlanner, native_planner
from xcc.runtime.program import BindSymbol, Buffer, Launch, Program
from xcc.symbolic import Dim, floordiv, mod, parse, sym
from xcc.targets.cpu import codegen
from xcc.targets.cpu.chip import host
from xcc.targets.cpu.link import link_shared

LIBRARY = load_library(link_shared([codegen.arena_planner(host())]))


def planner_of(program: Program, results: list[Dim] | None = None) -> tuple[ArenaPlanner, NativePlanner]:
    planner = ArenaPlanner(program)
    native = native_planner(LIBRARY, program.symbols, planner, results or [])
    assert native is not None
    return planner, native


def given_values(*values: int) -> ctypes.Array[ctypes.c_int64]:
    return (ctypes.c_int64 * len(values))(*values)


def assert_equal_plans(program: Program, planner: ArenaPlanner, native: NativePlanner, *values: int) -> None:
    wanted = planner.plan(dict(zip(program.symbols, values, strict=True)))
    size, begins, _ = native(given_values(*values)) or pytest.fail("not planned")
    assert size == wanted.size
    assert begins.tolist() == [wanted.offsets[b] for b in planner.temps]


@pytest.mark.parametrize("seed", range(20))
def test_random_programs(seed: int) -> None:
    """Sizes in another order than those of the run before, many of them equal."""
    rng = random.Random(seed)
    shapes: list[tuple[Dim, ...]] = [(parse("n"), 8), (8, parse("m")), (parse("m + n"),), (parse("max(m, 40)"), 3),
                                     (parse("floordiv(n, 2)"),), (17,)]
    buffers = tuple(Buffer("temp", rng.choice(shapes), rng.choice(["f32", "f16"])) for _ in range(60))
    body = tuple(Launch("k", tuple({max(0, i - rng.randrange(1, 9)), i}), ()) for i in range(60))
    program = Program(buffers, body, (), (), ("n", "unused", "m"))
    planner, native = planner_of(program)
    for _ in range(20):
        assert_equal_plans(program, planner, native, *(rng.choice([0, 1, rng.randrange(5000)]) for _ in range(3)))


def test_many_buffers() -> None:
    program = random_program(500, 1)
    planner, native = planner_of(program)
    for n in (1, 7, 100):
        assert_equal_plans(program, planner, native, n)


def test_plans_are_their_own() -> None:
    """The next plan does not change one that a caller keeps."""
    _, native = planner_of(chain(4, (parse("n"), 33)), [sym("n")])
    first = native(given_values(100))
    assert first is not None
    begins = first[1].tolist()
    native(given_values(1))
    assert first[1].tolist() == begins and first[2] == [100] and max(begins) > 0


def test_no_buffers_and_no_symbols() -> None:
    _, native = planner_of(Program((), (), (), ()))
    size, begins, results = native(given_values()) or pytest.fail("not planned")
    assert (size, begins.tolist(), results) == (0, [], [])


@given(st.lists(dims, max_size=5), st.integers(0, 50), st.integers(-50, 50))
def test_dims(many: list[Dim], n: int, m: int) -> None:
    _, native = planner_of(Program((), (), (), (), ("n", "m")), many)
    _, _, results = native(given_values(n, m)) or pytest.fail("not planned")
    assert results == DimValues(many)({"n": n, "m": m})


def test_sizes_that_a_run_finds_count_with_their_limit() -> None:
    shapes: tuple[tuple[Dim, ...], ...] = ((1,), (parse("k"), 2), (parse("j"),))
    buffers = tuple(Buffer("temp", shape, "i64") for shape in shapes)
    body = (BindSymbol("k", 0, 0, parse("10*n")), BindSymbol("j", 0, 0, parse("k + 1")), Launch("l", (1, 2), ()))
    program = Program(buffers, body, (), (), ("n",))
    planner, native = planner_of(program, [parse("j")])
    assert_equal_plans(program, planner, native, 8)
    assert (native(given_values(8)) or pytest.fail("not planned"))[2] == [81]


@pytest.mark.parametrize(("dim", "n"), [
    (sym("n") * sym("n"), 1 << 32), (sym("n"), 1 << 47),
    (sym("n") * sym("n") + sym("n") * (1 << 31), 3_000_000_000),
    (floordiv(100, sym("n")), 0), (mod(100, sym("n")), 0), (mod(100, sym("n")), -3)])
def test_what_python_plans(dim: Dim, n: int) -> None:
    """Products and sums beyond 64 bits, more than any memory, divisions by zero."""
    program = Program((Buffer("temp", (dim,), "f32"),), (Launch("k", (0,), ()),), (), (), ("n",))
    _, native = planner_of(program, [dim])
    assert native(given_values(n)) is None
    assert native(given_values(5)) is not None


def test_nothing_to_plan_with() -> None:
    """A library of an xcc that had none; a size with a symbol that only the run knows."""
    planner = ArenaPlanner(chain(2, (parse("n"),)))
    assert native_planner(ctypes.CDLL(None), ("n",), planner, []) is None
    assert native_planner(LIBRARY, (), planner, []) is None
    assert native_planner(LIBRARY, ("n",), planner, [parse("i")]) is None
