"""Which mesh torch's process groups form."""

from __future__ import annotations

from itertools import product

import pytest

from xcc.frontends.torch.group_mesh import mesh_of_groups
from xcc.runtime.mesh import Mesh


@pytest.mark.parametrize("rank, size, groups, mesh, axes", [
    (1, 2, {"0": (0, 1)}, "group_0:2", {"0": ("group_0",)}),
    (3, 8, {"0": range(8), "5": (2, 3)}, "ranks_2:4,group_5:2", {"0": ("ranks_2", "group_5"), "5": ("group_5",)}),
    (3, 4, {"tp": (2, 3), "dp": (1, 3)}, "group_dp:2,group_tp:2", {"tp": ("group_tp",), "dp": ("group_dp",)}),
    (6, 8, {"a b": (2, 6)}, "group_a_b:2,ranks_1:4", {"a b": ("group_a_b",)}),
    (5, 8, {"a": (0, 1, 4, 5)}, "ranks_4:2,ranks_2:2,ranks_1:2", {"a": ("ranks_4", "ranks_1")}),
    (0, 2, {"a": (0, 1), "b": (0, 1)}, "group_a:2,group_b:1", {"a": ("group_a",), "b": ("group_a", "group_b")}),
    (0, 2, {"a": (0,)}, "ranks_1:2", {"a": ()}),
    (0, 1, {"a": (0,), "b": (0,)}, "", {"a": (), "b": ()}),
])
def test_meshes(rank: int, size: int, groups: dict[str, tuple[int, ...]], mesh: str,
                axes: dict[str, tuple[str, ...]]) -> None:
    found = mesh_of_groups(rank, size, groups)
    assert found == (Mesh.parse(mesh), axes)


@pytest.mark.parametrize("rank, size, groups", [
    (0, 4, {"a": (0, 1, 3)}),                   # no distance is repeated
    (1, 4, {"a": (1, 2)}),                      # begins between places
    (0, 6, {"a": (0, 1), "b": (0, 3)}),         # (0, 1) of two, and three ranks between 0 and 3
    (0, 5, {"a": (0, 1)}),                      # the last rank has no other
    (2, 4, {"a": (0, 1)}),                      # the rank is not in it
    (0, 2, {"a": (1, 0)}),                      # not in order
])
def test_groups_that_form_none(rank: int, size: int, groups: dict[str, tuple[int, ...]]) -> None:
    assert mesh_of_groups(rank, size, groups) is None


def test_all_ranks_have_the_same_mesh() -> None:
    mesh = Mesh.parse("a:2,b:3,c:2")
    for kept in product((False, True), repeat=3):
        axes = [n for n, k in zip(mesh.names, kept, strict=True) if k]
        found = [mesh_of_groups(r, mesh.size, {"g": mesh.group(r, axes), "all": tuple(range(12))}) for r in range(12)]
        assert all(f is not None and f == found[0] for f in found)
