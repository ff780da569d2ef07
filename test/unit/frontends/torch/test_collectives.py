"""Functional collectives: what they mean on simulated ranks, and which ops stay in torch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch.distributed import _functional_collectives as funcol

from xcc.diagnostics import UserError
from xcc.dialects.xt.interpret_ranks import interpret_ranks
from xcc.frontends.torch.capture import capture_export
from xcc.frontends.torch.importer import load
from xcc.frontends.torch.partition import partitioned

pytestmark = pytest.mark.skipif(not dist.is_available(), reason="this torch has no torch.distributed")
ops, autograd = torch.ops._c10d_functional, torch.ops._c10d_functional_autograd
RANKS = 4


@pytest.fixture
def name() -> Iterator[str]:
    """The name of the group of all of four ranks, of which this process is the first, and the only one."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", rank=0, world_size=RANKS, store=FakeStore())
    yield dist.group.WORLD.group_name
    dist.destroy_process_group()


class Model(torch.nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x)


def exported(function: Any, shape: tuple[int, ...] = (8, 3), dynamic: Any = None) -> Any:
    return torch.export.export(Model(function), (torch.zeros(shape),), dynamic_shapes=dynamic)


def on_ranks(program: Any, xs: list[Any]) -> list[Any]:
    """The first result of each rank."""
    return all_on_ranks(program, xs)[0]


def all_on_ranks(program: Any, xs: list[Any]) -> list[Any]:
    """For each result what the ranks have."""
    modules = [load(program)[0] for _ in xs]
    return list(zip(*interpret_ranks(modules, [[x] for x in xs]), strict=True))


XS = [np.random.default_rng(rank).standard_normal((8, 3)).astype(np.float32) for rank in range(RANKS)]


TOTALS = {"sum": sum(XS), "avg": sum(XS) / RANKS, "max": np.max(XS, 0), "min": np.min(XS, 0), "product": np.prod(XS, 0)}


def test_all_reduce_and_reduce_scatter(name: str) -> None:
    def body(x: Any) -> list[Any]:
        made = [(ops.all_reduce(x, op, name), ops.reduce_scatter_tensor(x, op, RANKS, name),
                 autograd.reduce_scatter_tensor(x, op, RANKS, name)) for op in TOTALS]
        return [ops.wait_tensor(y) for of_op in made for y in of_op]

    made = all_on_ranks(exported(body), XS)
    for op, whole, *scattered in zip(TOTALS, made[::3], made[1::3], made[2::3], strict=True):
        for got in whole:
            np.testing.assert_allclose(got, TOTALS[op], rtol=1e-5, atol=1e-6, err_msg=op)
        for parts in scattered:
            np.testing.assert_allclose(np.concatenate(parts), TOTALS[op], rtol=1e-5, atol=1e-6, err_msg=op)


def test_moves(name: str) -> None:
    whole, even = np.concatenate(XS), [2] * RANKS

    def body(x: Any) -> list[Any]:
        made = [f(x) for form in (ops, autograd) for f in (
            lambda x, form=form: form.all_gather_into_tensor(x, RANKS, name),
            lambda x, form=form: form.all_to_all_single(x, even, even, name))]
        return [ops.wait_tensor(y) for y in (*made, ops.broadcast(x, 2, name))]

    *made, sent = all_on_ranks(exported(body), XS)
    for gathered, swapped in (made[:2], made[2:]):
        for rank in range(RANKS):
            np.testing.assert_array_equal(gathered[rank], whole)
            np.testing.assert_array_equal(swapped[rank], np.concatenate([x[2 * rank:2 * rank + 2] for x in XS]))
    for got in sent:
        np.testing.assert_array_equal(got, XS[2])


def test_coalesced(name: str) -> None:
    def several(x: Any) -> Any:
        summed = ops.all_reduce_coalesced([x, 2 * x], "sum", name)
        parts = ops.reduce_scatter_tensor_coalesced([x, 3 * x], "sum", RANKS, name)
        return ops.wait_tensor(summed[1]).sum() + ops.wait_tensor(parts[1]).sum()

    third = np.split(sum(XS), RANKS)
    for rank, got in enumerate(on_ranks(exported(several), XS)):
        np.testing.assert_allclose(got, 2 * sum(XS).sum() + 3 * third[rank].sum(), rtol=1e-4)


def test_symbolic_sizes_that_are_divided(name: str) -> None:
    four = torch.export.Dim("four")
    program = exported(lambda x: ops.wait_tensor(ops.reduce_scatter_tensor(x, "sum", RANKS, name)),
                       dynamic=({0: RANKS * four},))
    np.testing.assert_allclose(np.concatenate(on_ranks(program, XS)), sum(XS), rtol=1e-5)


def test_the_groups_are_kept(name: str) -> None:
    pair = dist.new_group([0, 1]).group_name
    graph = capture_export(exported(lambda x: ops.wait_tensor(ops.all_reduce(x, "sum", pair)) + ops.wait_tensor(
        ops.all_reduce(x, "max", name)))).graph
    assert graph.mesh == f"ranks_2:2,group_{pair}:2"
    assert dict(graph.groups) == {pair: (f"group_{pair}",), name: ("ranks_2", f"group_{pair}")}


def test_a_group_of_one_rank_has_no_collectives(name: str) -> None:
    alone = dist.new_group([0]).group_name
    graph = capture_export(exported(lambda x: ops.wait_tensor(ops.all_reduce(x, "sum", alone)))).graph
    assert graph.mesh == "" and dict(graph.groups) == {alone: ()}


@pytest.mark.parametrize("function, why", [
    (lambda x, n: ops.all_reduce(x, "band", n), r"test_collectives.py:\d+, in .*_c10d_functional.all_reduce.*'band'"),
    (lambda x, n: ops.all_reduce(x.to(torch.int32), "avg", n), r"the mean of ranks' i32"),
    (lambda x, n: ops.all_to_all_single(x, [1, 3, 2, 2], [2, 2, 2, 2], n), r"are not of one size"),
])
def test_errors_name_the_op_and_the_line(name: str, function: Any, why: str) -> None:
    with pytest.raises(UserError, match=why):
        load(exported(lambda x: ops.wait_tensor(function(x, name))))


def test_groups_that_form_no_mesh(name: str) -> None:
    odd = dist.new_group([0, 1, 3]).group_name
    program = exported(lambda x: funcol.wait_tensor(ops.all_reduce(x * 2, "sum", odd)) + 1)
    with pytest.raises(UserError, match=r"test_collectives.py:\d+.*ranks \(0, 1, 3\) are no axes of a mesh"):
        capture_export(program)
    cut, missing = partitioned(program.module(check_guards=False))
    assert cut is not None and len(missing) == 1 and "_c10d_functional.all_reduce.default" in missing[0]


def test_groups_that_this_process_has_not(name: str) -> None:
    program = exported(lambda x: ops.wait_tensor(ops.all_reduce(x, "sum", name)))
    dist.destroy_process_group()
    try:
        with pytest.raises(UserError, match=r"this process has no process group '0'.*init_process_group"):
            capture_export(program)
    finally:
        from torch.testing._internal.distributed.fake_pg import FakeStore

        dist.init_process_group("fake", rank=0, world_size=RANKS, store=FakeStore())


def graph_of(function: Any) -> Any:
    return exported(function).run_decompositions().graph_module


def test_where_collectives_are_torchs_they_are_not_listed(name: str) -> None:
    def function(x: Any) -> Any:
        return ops.wait_tensor(ops.all_reduce(x * 2, "sum", name)) + 1

    assert partitioned(graph_of(function)) == (None, [])
    cut, missing = partitioned(graph_of(function), together=False)
    assert missing == [] and [n.op for n in cut.graph.nodes][1:-1] == [
        "call_module", "call_function", "call_function", "call_module"]


def test_what_is_begun_elsewhere_is_waited_for_by_torch(name: str) -> None:
    cut, missing = partitioned(graph_of(lambda x: ops.wait_tensor(x) + 1))
    assert missing == [] and [str(n.target) for n in cut.graph.nodes if n.op == "call_function"] == [
        "_c10d_functional.wait_tensor.default"]
