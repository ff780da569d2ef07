"""Small models run on zeros when they are loaded: on which ways, how often, and which models do not."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from test_cpu_host import executor

import xcc
from xcc.diagnostics import UserError
from xcc.runtime import large_pages, rehearsal, run_memory
from xcc.runtime.program import Buffer, Copy, For, If, Launch, Program, While
from xcc.runtime.rehearsal import MOST_BYTES, RUNS, Rehearsal

X = np.array([1, 2, 3], np.float32)


def branches(*more: Any) -> Program:
    """y = 2 x where c, else x; `more` statements behind."""
    return Program(
        buffers=(Buffer("input", (), "i1", "c"), Buffer("input", (3,), "f32", "x"), Buffer("output", (3,), "f32", "y")),
        body=(If(0, (Launch("add", (1, 1, 2), (3,)),), (Copy(1, 2),)), *more), inputs=(0, 1), outputs=(2,))


@pytest.mark.parametrize("flag", [True, False])
def test_branches_go_the_other_way(flag: bool) -> None:
    run = executor(branches())
    flips = ctypes.c_int64.in_dll(run._library, "xcc_flips")
    for value in (1, 0, 2):
        flips.value = value
        (out,) = run.run([np.array(flag), X], {})
        np.testing.assert_array_equal(out, 2 * X if flag != (value == 1) else X)


def test_each_way_runs_and_the_one_of_the_data_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal, "SECONDS", 1e3)
    run, seen = executor(branches()), []
    assert run.rehearse_code(lambda: seen.append(run.run([np.array(False), X], {})[0][0]), [np.array(False), X], {})
    assert seen == [1] * RUNS + [2] * 2 * RUNS + [1] * RUNS
    assert run.run([np.array(False), X], {})[0][0] == 1


@pytest.mark.parametrize("flags", [(False, False), (False, True), (True, False), (True, True)])
def test_the_way_with_most_weights_is_the_last(flags: tuple[bool, bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the data say. y = x + v where a, and then x + w where not b; else y = x."""
    monkeypatch.setattr(rehearsal, "SECONDS", 1e3)
    inner = If(1, (Copy(2, 3),), (Launch("add", (2, 5, 3), (3,)),))
    program = Program(
        buffers=(Buffer("input", (), "i1", "a"), Buffer("input", (), "i1", "b"), Buffer("input", (3,), "f32", "x"),
                 Buffer("output", (3,), "f32", "y"), Buffer("weight", (3,), "f32", "v"),
                 Buffer("weight", (3,), "f32", "w")),
        body=(If(0, (Launch("add", (2, 4, 3), (3,)), inner), (Copy(2, 3),)),), inputs=(0, 1, 2), outputs=(3,))
    run = executor(program, {"v": 10 * X, "w": 20 * X})
    inputs, seen = [*map(np.array, flags), X], []
    assert run.rehearse_code(lambda: seen.append(run.run(inputs, {})[0][0]), inputs, {})
    assert seen[-RUNS:] == [21] * RUNS
    assert run.run(inputs, {})[0][0] == (1 if not flags[0] or flags[1] else 21)


def test_a_way_that_does_not_fit() -> None:
    """It is tried once, and forgotten."""
    run = executor(branches())
    flips = ctypes.c_int64.in_dll(run._library, "xcc_flips")
    ways = []

    def some() -> None:
        ways.append(flips.value)
        if not flips.value:
            raise UserError("too small")

    assert run.rehearse_code(some, [np.array(False), X], {})
    assert ways[0] == 0 and set(ways[1:]) == {1} and flips.value == 0


def test_where_no_way_fits() -> None:
    run = executor(branches())

    def never() -> None:
        raise UserError("too small")

    assert not run.rehearse_code(never, [np.array(False), X], {})


def test_few_runs_of_what_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal, "SECONDS", 0.0)
    run, seen = executor(Program((), (), (), ())), []
    assert run.rehearse_code(lambda: seen.append(0), [], {})
    assert len(seen) == 1


def test_loops_and_large_models_do_not_run() -> None:
    library = ctypes.CDLL(None)
    flag = Buffer("temp", (1,), "i1")
    for loop in (While((), 0, ()), For("i", 3, ())):
        assert not Rehearsal(Program((flag,), (If(0, (loop,), ()),), (), ()), library, 0).possible
    assert not Rehearsal(Program((), (), (), ()), library, MOST_BYTES + 1).possible
    small, runs = Rehearsal(Program((), (), (), ()), library, MOST_BYTES), []
    assert small(lambda: runs.append(1), MOST_BYTES + 1) and not runs
    assert small(lambda: runs.append(1), MOST_BYTES) and runs


def test_models_that_the_first_sizes_are_too_small_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A window of 200 samples: a run on 256 is gone through, and memory is there for it, as much as it takes."""
    reserved = []

    def reserve(size: int, *, exact: bool) -> Any:
        reserved.append((size, exact))
        return large_pages.reserve(size, exact=exact)

    monkeypatch.setattr(run_memory, "reserve", reserve)
    w, v = np.ones((8, 1, 200), np.float32), np.full((1, 8, 3), 1 / 24, np.float32)
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node("Relu", ["c"], ["r"]),
         helper.make_node("Conv", ["r", "v"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ("batch", 1, "n"))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(w, "w"), numpy_helper.from_array(v, "v")])
    path = tmp_path / "m.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)],
                                       ir_version=9).SerializeToString())
    xcc.compile(path).save(tmp_path / "m.xcm")
    model = xcc.load(tmp_path / "m.xcm")
    assert list(model.executor.memory.plans) == [(1, 256)]
    large = {"x": np.zeros((1, 1, 30000), np.float32)}
    assert model.executor.rehearse_code(lambda: model.run(large), *model._checked(large))
    assert reserved[-1] == (model.executor.memory.plans[1, 30000].arena, True)
    np.testing.assert_allclose(model(np.ones((2, 1, 203), np.float32)), np.full((2, 1, 2), 200), rtol=1e-5)
    with pytest.raises(UserError, match="too small"):
        model(np.ones((1, 1, 100), np.float32))
