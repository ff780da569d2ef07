"""The kernels that sum over GPUs: which a program needs, and what orders their writes and reads."""

from __future__ import annotations

import re
from typing import Any

import pytest

from xcc.options import CompileOptions
from xcc.runtime.peer_collectives import BLOCKS, EARLY, THREADS, does_collectives
from xcc.runtime.program import Buffer, Collective, For, Program
from xcc.targets.nvptx.target import TARGET

OPTIONS = CompileOptions.make("nvptx,code=ptx")


def kernels(dtype: str, kind: Any = "all_reduce", combine: Any = "add", chip: str = "sm_90a") -> Any:
    buffers = (Buffer("temp", (8,), dtype), Buffer("temp", (8,), dtype))
    program = Program(buffers, (For("i", 2, (Collective(kind, 0, 1, ("tp",), combine),)),), (), ())
    return TARGET.collective_kernels(program, TARGET.chips()[chip], OPTIONS)


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("chip", ["sm_80", "sm_90a", "sm_100a"])
def test_a_kernel_a_type(dtype: str, chip: str) -> None:
    kernel, = kernels(dtype, chip=chip)
    launch, = kernel.launches
    assert kernel.name == launch.entry == f"xcc_all_reduce_add_{dtype}" and does_collectives(launch.entry)
    assert (int(launch.grid[0]), launch.block) == (BLOCKS, (THREADS, 1, 1))


@pytest.mark.parametrize(("dtype", "kind", "combine"), [
    ("i32", "all_reduce", "add"), ("f32", "all_reduce", "max"), ("f32", "reduce_scatter", "add"),
    ("f16", "all_to_all", "")])
def test_the_library_does_the_rest(dtype: str, kind: Any, combine: Any) -> None:
    assert kernels(dtype, kind, combine) == ()


def test_the_order_of_writes_and_reads() -> None:
    """What was pushed is there before the flag says so; what came is read behind the flag, past the first cache."""
    text = kernels("f16")[0].blob.decode()
    found = re.findall(r"fence\.\w+\.sys|bar\.sync|st\.release\.sys|ld\.acquire\.sys|ld\.volatile\.global\.v", text)
    order = ["bar.sync", "st.release.sys", "ld.acquire.sys", "bar.sync", "ld.volatile.global.v"]
    places = iter(found)
    assert found[0].startswith("fence.") and all(any(f.startswith(name) for f in places) for name in order), found


@pytest.mark.parametrize("pairs", [((0, 1), (1, 0)), ((0, 1),)])
def test_an_exchange_is_among_two(pairs: Any) -> None:
    """What was sent is there before the flag says so, whoever sent it; nothing is read behind."""
    buffers = (Buffer("temp", (8,), "f16"), Buffer("temp", (8,), "f16"))
    program = Program(buffers, (Collective("permute", 0, 1, ("tp",), "", pairs),), (), ())
    made = TARGET.collective_kernels(program, TARGET.chips()["sm_90a"], OPTIONS)
    assert [k.name for k in made] == (["xcc_permute", "xcc_meeting_early"] if len(pairs) == 2 else [])
    for kernel in made:
        found = re.findall(r"fence\.\w+\.sys|bar\.sync|st\.release\.sys|ld\.acquire\.sys|ld\.volatile\.global\.v"
                           r"|griddepcontrol\.wait", kernel.blob.decode())
        assert does_collectives(kernel.name) and "ld.volatile.global.v" not in found
        if kernel.name.endswith(EARLY):
            assert kernel.launches[0].early
            assert found[:2] == ["griddepcontrol.wait", "st.release.sys"] and set(found[2:]) == {"ld.acquire.sys"}
        else:
            assert found[0].startswith("fence.") and found.index("bar.sync") < found.index("st.release.sys")


@pytest.mark.parametrize("dtype", ["f16", "i64", "i1"])
def test_a_gather_is_of_any_type(dtype: str) -> None:
    kernel, = kernels(dtype, "all_gather", "", "sm_80")
    assert kernel.name == "xcc_all_gather" and does_collectives(kernel.name)
