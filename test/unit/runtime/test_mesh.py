"""Meshes: the order of ranks, groups, and collectives that do not fit."""

import pytest

from xcc.diagnostics import UserError
from xcc.runtime.collective_checks import mesh_problem
from xcc.runtime.mesh import Mesh
from xcc.runtime.program import Buffer, Collective, Program

MESHES = [Mesh(), Mesh((("tp", 2),)), Mesh((("dp", 2), ("tp", 3))), Mesh((("pp", 4), ("dp", 1), ("tp", 16)))]


@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_text_and_coordinates_round_trip(mesh):
    assert Mesh.parse(str(mesh)) == mesh == Mesh.of([list(axis) for axis in mesh.axes]) == Mesh.of(dict(mesh.axes))
    assert [mesh.rank(mesh.coordinates(r)) for r in range(mesh.size)] == list(range(mesh.size))


def test_the_last_axis_is_the_fastest():
    mesh = Mesh.parse("dp:2, tp:3")
    assert [mesh.coordinates(r) for r in range(6)] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    assert mesh.group(4, ("tp",)) == (3, 4, 5) and mesh.place(4, ("tp",)) == 1
    assert mesh.group(4, ("dp",)) == (1, 4) and mesh.groups(("dp",)) == [(0, 3), (1, 4), (2, 5)]
    assert mesh.group(4, ("tp", "dp")) == tuple(range(6)) and mesh.group_size(("dp", "tp")) == 6
    assert mesh.group(4, ()) == (4,)


@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_groups_divide_the_ranks(mesh):
    for axes in [(), *((name,) for name in mesh.names), mesh.names[:2]]:
        groups = mesh.groups(axes)
        assert sorted(r for g in groups for r in g) == list(range(mesh.size))
        assert all(len(g) == mesh.group_size(axes) and mesh.group(r, axes) == g for g in groups for r in g)


@pytest.mark.parametrize(("text", "message"), [
    ("tp", "'tp' is no axis; write NAME:SIZE"), ("tp:two", "'tp:two' is no axis"), ("tp:0", "axis 'tp' has 0 ranks"),
    ("tp:2,tp:2", "'tp' is no name of an axis, or comes twice"), ("2:tp", "is no axis"), ("a b:2", "'a b' is no name"),
    ("a:1024,b:1024,c:2", "2097152 ranks are more")])
def test_texts_that_are_no_mesh(text, message):
    with pytest.raises(UserError, match=message):
        Mesh.parse(text)


@pytest.mark.parametrize("axes", [[["tp"]], ["tp"], [["tp", "2"]], [[2, "tp"]], [["tp", True]], ["ab"]])
def test_data_that_is_no_mesh(axes):
    with pytest.raises(UserError, match="is no axis"):
        Mesh.of(axes)


@pytest.mark.parametrize(("s", "message"), [
    (Collective("all_reduce", 0, 1, ("tp",), "add"), ""),
    (Collective("all_reduce", 0, 1, ("xp",), "add"), "the mesh dp:2,tp:3 has no axis 'xp'"),
    (Collective("permute", 0, 1, ("dp",), pairs=((0, 2),)), "beyond its 2 ranks"),
    (Collective("broadcast", 0, 1, ("tp",), root=3), "beyond its 3 ranks"),
    (Collective("all_gather", 0, 2, ("dp",)), ""),
    (Collective("all_gather", 0, 2, ("tp",)), "from 32 to 64 bytes among 3 ranks"),
    (Collective("reduce_scatter", 2, 0, ("tp",), "add"), "from 64 to 32 bytes among 3 ranks"),
    (Collective("all_to_all", 0, 1, ("tp",)), "32 bytes are not 3 equal parts")])
def test_collectives_and_meshes(s, message):
    p = Program((Buffer("input", (8,), "f32", "x"), Buffer("output", (8,), "f32", "y"), Buffer("temp", (16,), "f32")),
                (s,), (0,), (1,))
    assert message in mesh_problem(p, Mesh.parse("dp:2,tp:3")) and bool(message) == bool(
        mesh_problem(p, Mesh.parse("dp:2,tp:3")))
