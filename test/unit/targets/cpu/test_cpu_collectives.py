"""Collectives in native host programs, of ranks that are threads: in order, in loops and branches, and failures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from rank_programs import ADD, KINDS, N, cpu_kernels, each_kind

from xcc.diagnostics import UserError
from xcc.runtime.collectives import SimulatedRanks, exchange
from xcc.runtime.cpu import make_executor
from xcc.runtime.mesh import Mesh
from xcc.runtime.program import Buffer, Collective, Copy, For, If, Launch, Program, Require, Statement
from xcc.symbolic import sym
from xcc.targets.base import KernelBinary
from xcc.targets.cpu import chip as cpu_chip
from xcc.targets.cpu import codegen
from xcc.targets.cpu.target import TARGET


def executors(program: Program, mesh: Mesh) -> list[Any]:
    kernel = KernelBinary("k", "obj", codegen.emit_object(cpu_kernels.llvm_text(ADD), cpu_chip.host()), ())
    members = TARGET.link(program, (kernel,), cpu_chip.host(), None)
    return [make_executor(program, members, {}, {}, 1) for _ in range(mesh.size)]


def run(program: Program, mesh: Mesh, inputs: list[list[Any]]) -> list[Any]:
    """The outputs of each rank."""
    made = executors(program, mesh)

    def one(rank: int, communicate: Any) -> Any:
        made[rank].communicate(communicate, lambda s: mesh.group_size(s.axes))
        return made[rank].run(inputs[rank], {"n": inputs[rank][0].size})

    return SimulatedRanks(mesh).run(one)


def program(*body: Statement) -> Program:
    buffers = (Buffer("input", (N,), "f32", "x"), Buffer("output", (N,), "f32", "y"), Buffer("temp", (N,), "f32"),
               Buffer("input", (), "i1", "c"))
    return Program(buffers, body, (0, 3), (1,), ("n",))


SUM = Collective("all_reduce", 1, 1, ("tp",), "add")
ROWS = [np.arange(5, dtype=np.float32) + 100 * r for r in range(3)]
MESH = Mesh((("tp", 3),))


def check(p: Program, wanted: Any, flag: bool = True) -> None:
    for rank, (y,) in enumerate(run(p, MESH, [[x, np.array(flag)] for x in ROWS])):
        np.testing.assert_array_equal(y, wanted(ROWS[rank]))


def test_in_a_loop() -> None:
    """Three times y = 3 y, after a sum."""
    check(program(Copy(0, 1), SUM, For("i", 3, (SUM,))), lambda x: 27 * sum(ROWS))


@pytest.mark.parametrize("flag", [True, False])
def test_in_a_branch(flag: bool) -> None:
    check(program(Copy(0, 1), If(3, (SUM, Launch("add", (1, 0, 2), (N,)), Copy(2, 1)), ())),
          lambda x: sum(ROWS) + x if flag else x, flag)


def test_many_after_one_another() -> None:
    """More than blocks could be nested."""
    body = [Collective("all_reduce", 1, 1, ("tp",), "max") for _ in range(300)]
    check(program(Copy(0, 1), *body), lambda x: ROWS[2])


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind(kind: str) -> None:
    p = each_kind("f32", 3)
    given = [np.arange(12, dtype=np.float32) + 100 * rank for rank in range(3)]
    n = KINDS.index(kind)
    for got, wanted in zip(run(p, MESH, [[x] for x in given]), exchange(p.body[n], given), strict=True):
        np.testing.assert_array_equal(got[n], wanted)


@pytest.mark.parametrize("inside", [True, False])
def test_nothing_runs_behind_one_that_fails(inside: bool) -> None:
    body = (SUM, Launch("add", (1, 1, 1), (N,)), SUM)
    p = program(Copy(0, 1), For("i", 2, body)) if inside else program(Copy(0, 1), *body)
    run, = executors(p, Mesh((("tp", 1),)))
    calls = []

    def fail(*arguments: Any) -> None:
        calls.append(arguments)
        raise UserError("another rank failed")

    run.communicate(fail, lambda s: 1)
    y = np.zeros(5, np.float32)
    with pytest.raises(UserError, match="another rank failed"):
        run.run([ROWS[1], np.array(True)], {"n": 5}, [y])
    assert len(calls) == 1
    np.testing.assert_array_equal(y, ROWS[1])


def test_requirements_and_collectives() -> None:
    run, = executors(program(Copy(0, 1), SUM, Require(N, sym("n") * 2, "here"), SUM), Mesh((("tp", 1),)))
    calls = []
    run.communicate(lambda s, source, target: calls.append(s), lambda s: 1)
    with pytest.raises(UserError, match="here"):
        run.run([ROWS[1], np.array(True)], {"n": 5})
    assert len(calls) == 1
