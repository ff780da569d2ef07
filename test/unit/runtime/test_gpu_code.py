"""Which code of a model a GPU takes."""

from __future__ import annotations

import pytest
from host_driver import HostDriver, N, add, add_one, f32

from xcc import symbolic
from xcc.diagnostics import UserError
from xcc.runtime.cuda import best_version
from xcc.runtime.gpu_code import modules_of
from xcc.runtime.gpu_executor import GpuExecutor
from xcc.runtime.hip import version_for
from xcc.runtime.program import Launch, Program
from xcc.runtime.versions import Version


def version(chip, *suffixes):
    return Version(chip, Program((), (), (), ()), {f"kernels/k{s}": f"{chip}{s}".encode() for s in suffixes},
                   [{"name": "k", "entries": ["k"]}])


def chosen(versions, capability):
    """What is loaded on a GPU of this compute capability."""
    version, suffixes = best_version(versions, capability)
    return b" ".join(modules_of(version.members, version.kernels, suffixes)[0]).decode()


@pytest.mark.parametrize(("chips", "capability", "taken"), [
    (["sm_80"], (8, 0), "sm_80.cubin"), (["sm_80"], (8, 6), "sm_80.cubin"), (["sm_80"], (9, 0), "sm_80.ptx"),
    (["sm_80"], (12, 0), "sm_80.ptx"), (["sm_90a"], (9, 0), "sm_90a.cubin"),
    (["sm_80", "sm_90a"], (9, 0), "sm_90a.cubin"), (["sm_90a", "sm_80"], (10, 0), "sm_80.ptx"),
    (["sm_80", "sm_86", "sm_89"], (8, 6), "sm_86.cubin"), (["sm_80", "sm_89"], (9, 0), "sm_89.ptx")])
def test_the_newest_code_that_this_gpu_runs(chips, capability, taken):
    """Cubins run on their major revision, PTX on what came later, neither elsewhere where the name ends in "a"."""
    assert chosen([version(chip, ".cubin", ".ptx") for chip in chips], capability) == taken


def test_code_of_one_format():
    assert chosen([version("sm_80", ".ptx")], (9, 0)) == chosen([version("sm_80", ".ptx")], (8, 0)) == "sm_80.ptx"
    with pytest.raises(UserError, match="sm_80"):
        best_version([version("sm_80", ".cubin")], (9, 0))


@pytest.mark.parametrize(("chips", "capability"), [
    (["sm_90a"], (8, 0)), (["sm_90a"], (10, 0)), (["sm_89"], (8, 6)), (["sm_89", "sm_90a"], (8, 0))])
def test_code_for_another_gpu_is_refused_in_words(chips, capability):
    seen = f"compiled for {', '.join(chips)} and this GPU is sm_{capability[0]}{capability[1]}"
    with pytest.raises(UserError, match=seen):
        best_version([version(chip, ".cubin", ".ptx") for chip in chips], capability)


def test_the_version_for_an_amd_gpu():
    versions = [version("gfx942", ".hsaco"), version("gfx1100", ".hsaco")]
    assert version_for(versions, "gfx1100") is versions[1]
    with pytest.raises(UserError, match="compiled for gfx942, gfx1100 and this GPU is gfx90a"):
        version_for(versions, "gfx90a")


def test_a_missing_kernel_is_named():
    driver = HostDriver({})
    program = Program((f32("input", N, name="x"), f32("output", N, name="y")), (add(0, 1),), (0,), (1,), ("n",))
    with pytest.raises(RuntimeError, match="has the kernel 'add_one'"):
        GpuExecutor(driver, program, [b"m"], {})


def test_no_module_is_asked_for_a_kernel_that_it_has_not():
    """Tools that watch the driver (memcheck) report each call that fails."""
    class TwoModules(HostDriver):
        def function(self, module, name, shared_bytes=0):
            assert module == name.encode()
            return self.kernels["add_one"]

    calls = [Launch(name, (0, 1), (N,), (symbolic.ceildiv(N, 4), 1, 1), (128, 1, 1)) for name in ("one", "two")]
    program = Program((f32("input", N, name="x"), f32("output", N, name="y")), tuple(calls), (0,), (1,), ("n",))
    members = {"kernels/a.cubin": b"one", "kernels/b.ptx": b"two", "kernels/c.txt": b"none"}
    manifest = {"kernels": [{"name": "b", "entries": ["two"]}, {"name": "a", "entries": ["one"]}]}
    blobs, holders = modules_of(members, manifest["kernels"], (".cubin", ".ptx"))
    assert (blobs, holders) == ([b"two", b"one"], {"two": 0, "one": 1})
    GpuExecutor(TwoModules({"add_one": add_one}), program, blobs, {}, holders)
    with pytest.raises(UserError, match="no code of the kernel 'd'"):
        modules_of(members, [{"name": "d", "entries": []}], (".cubin", ".ptx"))
