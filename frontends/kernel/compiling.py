"""From a tile program to code: by the stages, the compiler processes and the cache that kernels of models have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xcc import tile
from xcc.diagnostics import UserError
from xcc.frontends.kernel.arguments import Array
from xcc.frontends.kernel.launching import Code, DeviceCode, HostCode
from xcc.frontends.kernel.specialise import ArrayOf, Specialisation
from xcc.options import CompileOptions
from xcc.process import kernels
from xcc.process.worker import KernelJob
from xcc.runtime.dlpack import CPU, CUDA, ROCM
from xcc.runtime.executors import executor_module, on_host
from xcc.targets.base import chip_of, get_target, target_names
from xcc.targets.front import tile_pipeline
from xcc.targets.hints import called

__all__ = ["Stages", "compiled", "loaded", "place_of", "stages"]


_MAKERS = {CPU: "cpu", CUDA: "cuda", ROCM: "rocm"}      # DLPack's devices, as targets are called


class Stages(dict[str, str]):
    """The IR of a kernel after each stage, by the stage's name."""

    def __str__(self) -> str:
        return "\n".join(f"// -- {name} {'-' * (100 - len(name))}\n{text.strip()}\n" for name, text in self.items())

    __repr__ = __str__


def compiled(program: tile.Program, options: CompileOptions, keep: Sequence[str] = (), pipeline: Any = None,
             emit: bool = True) -> tile.Compiled:
    """The code of `program`; `keep` names stages whose IR is wanted."""
    target = get_target(options.target)
    chip = chip_of(target, options.chip)
    plan = None if pipeline is None else str(pipeline)
    job = KernelJob(program.name, program.text, plan, chip, options, tuple(keep), emit)
    result = kernels.compile_all([job])[0]
    return tile.Compiled(program, chip, options, result.binary, result.kept)


def place_of(given: Sequence[Any]) -> tuple[str, int]:
    """The target for the device that the arrays among the arguments are on, and the device's number; UserError where
    they are on several."""
    devices = {v.device for v in given if isinstance(v, Array)} or {(CPU, 0)}
    if len(devices) > 1:
        raise UserError("the arrays are on several devices: move them to one")
    (kind, number), = devices
    found = called(_MAKERS.get(kind, ""), map(get_target, target_names()))
    if len(found) != 1:
        raise UserError(f"the arrays are on DLPack device {kind}: kernels run on this machine's CPU and on its GPUs")
    return found[0].name, number


def loaded(form: Specialisation, target: str, number: int) -> Code:
    """The code of a form for this machine's processor of a target and a number, ready to run."""
    from xcc.frontends.kernel.artifact import artifact_of, written

    made = compiled(form.program, CompileOptions(target=target))
    artifact = artifact_of(made)
    where = {} if on_host(target) else {"device": number}
    executor = executor_module(target).make_executor(artifact.program, artifact.members, artifact.weights,
                                                     artifact.manifest, **where)
    names = [p.name for p in made.parameters]
    if not on_host(target):
        arrays = [k for k in form.kinds.values() if isinstance(k, ArrayOf)]
        return DeviceCode(names, made.symbols, written(form.program), executor,
                          [i for i, k in enumerate(arrays) if k.layout == "dense"])
    assert made.binary is not None
    pointers = sum(p.is_buffer for p in made.parameters)
    function = executor.kernel(made.binary.launches[0].entry, pointers, len(made.symbols))
    return HostCode(names, made.symbols, written(form.program), function)


def stages(program: tile.Program, target: str, chip: str) -> Stages:
    """What each stage makes of `program` for a target."""
    options = CompileOptions.make(target, chip=chip)
    names = tile_pipeline(options).stage_names()
    made = compiled(program, options, keep=names, emit=False)
    return Stages({"program": str(program), **made.stages})
