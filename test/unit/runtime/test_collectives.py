"""What collectives mean, and ranks that are threads of one process."""

import numpy as np
import pytest

from xcc.diagnostics import UserError
from xcc.runtime.collectives import SimulatedRanks
from xcc.runtime.mesh import Mesh
from xcc.runtime.numpy_executor import NumpyExecutor
from xcc.runtime.program import Buffer, Collective, Copy, Program

MESHES = [Mesh.parse(text) for text in ("tp:2", "tp:3", "dp:2,tp:2", "tp:4,dp:1", "dp:4,tp:4,pp:4")]


def run(mesh, body, sizes, rows):
    """The second buffer of each rank, where the first holds `rows[rank]`."""
    program = Program((Buffer("input", (sizes[0],), "f32", "x"), Buffer("output", (sizes[1],), "f32", "y")),
                      tuple(body), (0,), (1,))

    def one(rank, communicate):
        return NumpyExecutor(program, {}, None, communicate).run([rows[rank]])[0]

    return SimulatedRanks(mesh).run(one)


@pytest.mark.parametrize("mesh", MESHES, ids=str)
@pytest.mark.parametrize("kind", ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "permute", "broadcast"])
def test_each_kind(mesh, kind):
    n = mesh.group_size(("tp",))
    rows = np.random.default_rng(0).integers(0, 99, (mesh.size, 4 * n)).astype(np.float32)
    sizes = {"all_gather": (4 * n, 4 * n * n), "reduce_scatter": (4 * n, 4)}.get(kind, (4 * n, 4 * n))
    s = Collective(kind, 0, 1, ("tp",), "add" if "reduce" in kind else "",
                   ((0, n - 1), (n - 1, 1)) if kind == "permute" and n > 2 else ((0, 1),) if kind == "permute" else (),
                   n - 1 if kind == "broadcast" else 0)
    for rank, y in enumerate(run(mesh, [s], sizes, rows)):
        group, place = list(mesh.group(rank, ("tp",))), mesh.place(rank, ("tp",))
        parts = rows[group].reshape(n, n, 4)
        sender = [a for a, b in s.pairs if b == place]
        want = {"all_reduce": rows[group].sum(0), "all_gather": rows[group], "reduce_scatter": parts[:, place].sum(0),
                "all_to_all": parts[:, place], "broadcast": rows[group[-1]],
                "permute": rows[group[sender[0]]] if sender else 0 * rows[0]}[kind]
        np.testing.assert_array_equal(y, want.reshape(-1))


def test_collectives_follow_one_another_in_place():
    mesh, rows = Mesh.parse("dp:2,tp:2"), np.arange(8, dtype=np.float32).reshape(4, 2)
    body = [Copy(0, 1), Collective("all_reduce", 1, 1, ("tp",), "add"), Collective("all_reduce", 1, 1, ("dp",), "max")]
    for y in run(mesh, body, (2, 2), rows):
        np.testing.assert_array_equal(y, rows[2] + rows[3])


def test_several_axes_are_one_group():
    mesh, rows = Mesh.parse("a:2,b:2,c:2"), np.arange(8, dtype=np.float32).reshape(8, 1)
    for rank, y in enumerate(run(mesh, [Collective("all_gather", 0, 1, ("c", "a"))], (1, 4), rows)):
        np.testing.assert_array_equal(y, [0, 1, 4, 5] if rank in (0, 1, 4, 5) else [2, 3, 6, 7])


def test_narrow_floats_are_combined_wide_and_rounded_once():
    program = Program((Buffer("input", (1,), "f16", "x"), Buffer("output", (1,), "f16", "y")),
                      (Collective("all_reduce", 0, 1, ("tp",), "add"),), (0,), (1,))
    rows = [np.array([v], np.float16) for v in (2048, 1, 1)]
    ys = SimulatedRanks(Mesh.parse("tp:3")).run(
        lambda rank, communicate: NumpyExecutor(program, {}, None, communicate).run([rows[rank]])[0])
    assert [float(y[0]) for y in ys] == [2050] * 3


def test_a_rank_that_fails_ends_all():
    def one(rank, communicate):
        if rank == 1:
            raise KeyError("lost")
        x = np.zeros(1, np.float32)
        communicate(Collective("all_reduce", 0, 0, ("tp",), "add"), x, x)

    with pytest.raises(KeyError, match="lost"):
        SimulatedRanks(Mesh.parse("tp:4")).run(one)


def test_ranks_that_wait_for_others_end():
    x = np.zeros(1, np.float32)

    def one(rank, communicate):
        if rank:
            communicate(Collective("broadcast", 0, 0, ("tp",)), x, x)

    with pytest.raises(UserError, match="that do not come: 1 in broadcast over tp"):
        SimulatedRanks(Mesh.parse("tp:2")).run(one)


def test_ranks_that_do_different_things_end():
    x = np.zeros(1, np.float32)
    with pytest.raises(UserError, match="meet in different collectives"):
        SimulatedRanks(Mesh.parse("tp:2")).run(lambda rank, communicate: communicate(
            Collective("all_reduce", 0, 0, ("tp",), "max" if rank else "add"), x, x))


def test_a_rank_alone_says_so():
    program = Program((Buffer("input", (1,), "f32", "x"), Buffer("output", (1,), "f32", "y")),
                      (Collective("all_reduce", 0, 1, ("tp",), "add"),), (0,), (1,))
    with pytest.raises(UserError, match="one of several ranks', and runs alone"):
        NumpyExecutor(program, {}, None).run([np.zeros(1, np.float32)])
