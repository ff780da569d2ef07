"""What ranks do together, all of them at once in numpy; and the same after the ops are along the first dim."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from xcc._mlir import ir
from xcc.diagnostics import Misfit, UserError
from xcc.dialects import xt
from xcc.dialects.xt.collective import MESH, mesh_attribute
from xcc.dialects.xt.interpret import interpret
from xcc.dialects.xt.interpret_ranks import interpret_ranks
from xcc.passes.base import PassContext, get_pass
from xcc.runtime.mesh import Mesh

CONTEXT = xt.context()


def program(mesh: str, shape: tuple[int, ...], *ops: tuple[str, dict[str, Any]], dtype: str = "f32") -> Any:
    """A module whose @main applies `ops` to its argument one after the other."""
    with CONTEXT, ir.Location.unknown():
        module = ir.Module.create()
        module.operation.attributes[MESH] = mesh_attribute(Mesh.parse(mesh))
        kind = xt.tensor_type(shape, ir.Type.parse(dtype))
        with ir.InsertionPoint(module.body):
            function = ir.Operation.create("func.func", attributes={
                "sym_name": ir.StringAttr.get("main"),
                "function_type": ir.TypeAttr.get(ir.FunctionType.get([kind], [kind]))}, regions=1)
            block = function.regions[0].blocks.append(kind, arg_locs=[ir.Location.unknown()])
            with ir.InsertionPoint(block):
                value = block.arguments[0]
                for name, attributes in ops:
                    value = getattr(xt, name)(value, **attributes)
                ir.Operation.create("func.return", operands=[value])
        function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get([kind], [value.type]))
        xt.verify(module)
    return module


def run(module: Any, xs: list[Any]) -> list[Any]:
    """Each rank's result; the same when the ops are along the first dim."""
    got = [r[0] for r in interpret_ranks([module] * len(xs), [[x] for x in xs])]
    with CONTEXT:
        other = ir.Module.parse(str(module))
    get_pass("xt-decompose")().run(other, PassContext())
    for a, b in zip(got, interpret_ranks([other] * len(xs), [[x] for x in xs]), strict=True):
        np.testing.assert_array_equal(a, b[0])
    return got


def arrays(count: int, shape: tuple[int, ...], seed: int = 0) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [rng.integers(-9, 9, shape).astype(np.float32) for _ in range(count)]


@pytest.mark.parametrize("ranks", (1, 2, 3, 4))
@pytest.mark.parametrize("dim", (0, 1, 2))
def test_along_each_dim(ranks: int, dim: int) -> None:
    shape = (ranks * 2, ranks * 3, ranks)
    xs = arrays(ranks, shape)
    same = {"axes": ("tp",), "ranks": ranks}
    for y in run(program(f"tp:{ranks}", shape, ("all_gather", {**same, "dim": dim})), xs):
        np.testing.assert_array_equal(y, np.concatenate(xs, dim))
    ys = run(program(f"tp:{ranks}", shape, ("reduce_scatter", {**same, "dim": dim, "combine": "max"})), xs)
    np.testing.assert_array_equal(np.concatenate(ys, dim), np.max(xs, 0))
    for concat in range(3):
        ys = run(program(f"tp:{ranks}", shape, ("all_to_all", {**same, "split": dim, "concat": concat})), xs)
        for place, y in enumerate(ys):
            np.testing.assert_array_equal(y, np.concatenate([np.split(x, ranks, dim)[place] for x in xs], concat))


@pytest.mark.parametrize("ranks", (2, 3, 4))
def test_gather_of_scattered_sums_is_all_reduce(ranks: int) -> None:
    shape = (2, ranks * 2)
    xs = arrays(ranks, shape, ranks)
    same = {"axes": ("tp",), "ranks": ranks, "dim": 1}
    both = program(f"tp:{ranks}", shape, ("reduce_scatter", same), ("all_gather", same))
    for y in run(both, xs):
        np.testing.assert_array_equal(y, sum(xs))
    for y in run(program(f"tp:{ranks}", shape, ("all_reduce", {"axes": ("tp",)})), xs):
        np.testing.assert_array_equal(y, sum(xs))


def test_groups_of_a_mesh() -> None:
    xs = arrays(6, (2,))
    ys = run(program("dp:2,tp:3", (2,), ("all_reduce", {"axes": ("tp",)})), xs)
    for rank, y in enumerate(ys):
        first = rank // 3 * 3
        np.testing.assert_array_equal(y, sum(xs[first:first + 3]))
    ys = run(program("dp:2,tp:3", (2,), ("all_reduce", {"axes": ("dp",), "combine": "min"})), xs)
    for rank, y in enumerate(ys):
        np.testing.assert_array_equal(y, np.minimum(xs[rank % 3], xs[rank % 3 + 3]))
    ys = run(program("dp:2,tp:3", (2,), ("all_gather", {"axes": ("tp", "dp"), "ranks": 6})), xs)
    np.testing.assert_array_equal(ys[4], np.concatenate(xs))


def test_sends_and_broadcasts() -> None:
    xs = arrays(4, (3,))
    ys = run(program("pp:4", (3,), ("permute", {"axes": ("pp",), "pairs": (0, 1, 2, 0)})), xs)
    for y, want in zip(ys, (xs[2], xs[0], 0 * xs[0], 0 * xs[0]), strict=True):
        np.testing.assert_array_equal(y, want)
    for y in run(program("pp:4", (3,), ("collective_broadcast", {"axes": ("pp",), "root": 2})), xs):
        np.testing.assert_array_equal(y, xs[2])


def test_narrow_floats_are_summed_in_f32() -> None:
    xs = [np.full((1,), v, np.float16) for v in (2048, 1, 1)]
    module = program("tp:3", (1,), ("all_reduce", {"axes": ("tp",)}), dtype="f16")
    assert [float(y[0]) for y in run(module, xs)] == [2050.0] * 3


def test_many_ranks() -> None:
    xs = arrays(64, (64,))
    same = {"axes": ("dp", "tp"), "ranks": 64}
    ys = run(program("dp:8,tp:8", (64,), ("reduce_scatter", same)), xs)
    np.testing.assert_array_equal(np.concatenate(ys), sum(xs))


@pytest.mark.parametrize("name, attributes, why", [
    ("reduce_scatter", {"axes": ("tp",), "ranks": 3}, "does not divide into 3 parts"),
    ("all_gather", {"axes": ("tp",), "ranks": 2, "dim": 2}, "dim 2 is out of range"),
    ("permute", {"axes": ("tp",), "pairs": (0, 1, 0, 2)}, "a place sends once"),
    ("all_reduce", {"axes": ("tp",), "combine": "mean"}, "is none of"),
])
def test_what_does_not_fit(name: str, attributes: dict[str, Any], why: str) -> None:
    with pytest.raises(Misfit, match=why):
        program("tp:2", (4,), (name, attributes))


@pytest.mark.parametrize("mesh, name, attributes, why", [
    ("tp:2", "all_reduce", {"axes": ("dp",)}, "the mesh has tp"),
    ("tp:2", "all_gather", {"axes": ("tp",), "ranks": 4}, "ranks is 4, the axes tp have 2"),
    ("tp:2", "permute", {"axes": ("tp",), "pairs": (0, 2)}, "place 2 is not in a group of 2"),
])
def test_what_the_mesh_does_not_have(mesh: str, name: str, attributes: dict[str, Any], why: str) -> None:
    with pytest.raises(UserError, match=why):
        program(mesh, (4,), (name, attributes))


def test_ranks_that_do_not_meet() -> None:
    reduce_ = program("tp:2", (4,), ("all_reduce", {"axes": ("tp",)}))
    gather = program("tp:2", (4,), ("all_gather", {"axes": ("tp",), "ranks": 2}))
    xs = [[x] for x in arrays(2, (4,))]
    with pytest.raises(UserError, match="meet in different collectives"):
        interpret_ranks([reduce_, gather], xs)
    with pytest.raises(UserError, match="ranks wait for others that do not come: 0 in all_reduce over tp"):
        interpret_ranks([reduce_, program("tp:2", (4,))], xs)
    with pytest.raises(UserError, match="input 0 of @main is float64"):
        interpret_ranks([reduce_, reduce_], [xs[0], [xs[1][0].astype(np.float64)]])


def test_one_rank_alone_has_no_meaning() -> None:
    with pytest.raises(UserError, match="interpret_ranks"):
        interpret(program("tp:2", (4,), ("all_reduce", {"axes": ("tp",)})), arrays(1, (4,)))


def test_what_is_not_used_stays() -> None:
    from xcc.passes.xt.graph.rewrite import erase_dead

    module = program("tp:2", (4,), ("all_reduce", {"axes": ("tp",)}), ("exp", {}))
    with CONTEXT:
        main = module.body.operations[0].operation.regions[0].blocks[0]
        list(main.operations)[-1].operation.operands[0] = main.arguments[0]
        erase_dead(module)
    assert "xt.all_reduce" in str(module) and "xt.exp" not in str(module)
