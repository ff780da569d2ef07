"""Plans that the model's own code makes are those of xcc.runtime.arena."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_arena import chain, random_program
from test_symbolic import dims

from xcc._mlir import ir
from xcc.runtime.arena import ArenaPlanner
from xcc.runtime.dim_values import DimValues
from xcc.runtime.library import Library, load_library
from xcc.runtime.native_plan import native_planner
from xcc.runtime.program import BindSymbol, Buffer, Launch, Program
from xcc.symbolic import Dim, floordiv, mod, parse, sym
from xcc.targets.cpu import codegen
from xcc.targets.cpu.chip import host
from xcc.targets.cpu.host import lowered
from xcc.targets.cpu.link import link_shared
from xcc.targets.cpu.plan import plan_function

ARENA = 1 << 20         # where it is


def compiled(text: str) -> Library:
    """The library of one host function."""
    with ir.Context(), ir.Location.unknown():
        return load_library(link_shared([codegen.emit_object(lowered(ir.Module.parse(text)), host())]))


class Planned:
    """A native planner of `program`, and what Python plans."""

    def __init__(self, program: Program, results: Sequence[Dim] = ()) -> None:
        self.program, self.planner = program, ArenaPlanner(program)
        self.addresses = (ctypes.c_void_p * max(1, len(program.buffers)))()
        library = compiled(plan_function(program, results))
        native = native_planner(library, self.planner, results, self.addresses)
        assert native is not None
        native.move_to(ARENA)
        self.native = native

    def size(self, *values: int) -> int:
        """Bytes of the arena, or -1."""
        return self.native((ctypes.c_int64 * len(values))(*values))

    def dims(self, *values: int) -> list[int]:
        assert self.size(*values) >= 0
        return list(self.native.dims)

    def check(self, *values: int) -> None:
        wanted = self.planner.plan(dict(zip(self.program.symbols, values, strict=True)))
        if wanted.void:         # Python is to plan
            assert self.size(*values) == -1
            return
        assert self.size(*values) == wanted.size
        assert self.native.begins.tolist() == [wanted.offsets[b] for b in self.planner.temps]
        places = {b: ARENA + begin for b, begin in wanted.offsets.items()}
        assert list(self.addresses) == [places.get(b) for b in range(len(self.addresses))]


@pytest.mark.parametrize("seed", range(20))
def test_random_programs(seed: int) -> None:
    """Sizes in another order than those of the run before, many of them equal."""
    rng = random.Random(seed)
    shapes: list[tuple[Dim, ...]] = [(parse("n"), 8), (8, parse("m")), (parse("m + n"),), (parse("max(m, 40)"), 3),
                                     (parse("floordiv(n, 2)"), parse("divisor(n, root(m, 2))")), (17,)]
    buffers = tuple(Buffer("temp", rng.choice(shapes), rng.choice(["f32", "f16"])) for _ in range(60))
    body = tuple(Launch("k", tuple({max(0, i - rng.randrange(1, 9)), i}), ()) for i in range(60))
    program = Program(buffers, body, (), (), ("n", "unused", "m"))
    planned = Planned(program)
    for _ in range(20):
        planned.check(*(rng.choice([0, 1, rng.randrange(5000)]) for _ in range(3)))


def test_many_buffers() -> None:
    planned = Planned(random_program(500, 1))
    for n in (1, 7, 100):
        planned.check(n)


def test_no_buffers() -> None:
    planned = Planned(Program((), (), (), (), ("n",)))
    assert planned.size(3) == 0 and planned.dims(3) == []


@settings(max_examples=10)
@given(st.lists(dims, min_size=20, max_size=40), st.lists(st.tuples(st.integers(0, 50), st.integers(-50, 50))))
def test_dims(many: list[Dim], sizes: list[tuple[int, int]]) -> None:
    planned, expected = Planned(Program((), (), (), (), ("n", "m")), many), DimValues(many)
    for n, m in sizes:
        wanted = expected({"n": n, "m": m})
        assert planned.size(n, m) == -1 if 0 in wanted else planned.dims(n, m) == wanted


def test_sizes_that_a_run_finds_count_with_their_limit() -> None:
    shapes: tuple[tuple[Dim, ...], ...] = ((1,), (parse("k"), 2), (parse("j"),))
    buffers = tuple(Buffer("temp", shape, "i64") for shape in shapes)
    body = (BindSymbol("k", 0, 0, parse("10*n")), BindSymbol("j", 0, 0, parse("k + 1")), Launch("l", (1, 2), ()))
    program = Program(buffers, body, (), (), ("n",))
    planned = Planned(program, [parse("j")])
    planned.check(8)
    assert planned.dims(8) == [81]


@pytest.mark.parametrize(("dim", "n"), [
    (sym("n") * sym("n"), 1 << 32), (sym("n"), 1 << 47),
    (sym("n") * sym("n") + sym("n") * (1 << 31), 3_000_000_000),
    (floordiv(100, sym("n")), 0), (mod(100, sym("n")), 0), (mod(100, sym("n")), -3)])
def test_what_python_plans(dim: Dim, n: int) -> None:
    """Products and sums beyond 64 bits, more than any memory, divisions by zero."""
    program = Program((Buffer("temp", (dim,), "f32"),), (Launch("k", (0,), ()),), (), (), ("n",))
    planned = Planned(program, [dim])
    assert planned.size(n) == -1
    assert not any(planned.addresses)
    planned.check(5)


def test_nothing_to_plan_with() -> None:
    """A library of an xcc that had none; no symbols; a size with a symbol that only the run knows."""
    planner = ArenaPlanner(chain(2, (parse("n"),)))
    assert native_planner(ctypes.CDLL(None), planner, [], None) is None
    assert not plan_function(Program((), (), (), ()), [])
    assert not plan_function(Program((), (), (), (), ("n",)), [parse("i")])
