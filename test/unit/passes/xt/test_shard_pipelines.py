"""Ranks give the same numbers after all passes of a target's stages xt and kernels, as host programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernel_cases import functions, module_of, run_block
from shard_models import MODELS, Weights, transformer
from sharded import close, copy_of, of_batch

from xcc.dialects import xt
from xcc.dialects.xt.interpret import interpret
from xcc.driver.split import strip_kernels
from xcc.driver.stages import Clock, run_stage
from xcc.options import CompileOptions
from xcc.passes.base import PassContext
from xcc.passes.host.lowering.program_ops import read_program
from xcc.runtime.collectives import SimulatedRanks
from xcc.runtime.mesh import Mesh
from xcc.runtime.numpy_executor import NumpyExecutor
from xcc.targets.base import chip_of, get_target
from xcc.weights import WeightStore

F = xt.TensorType
CHIPS = {"cpu": "x86-64-v3", "nvptx": "sm_90a"}


def rank_program(module: Any, weights: WeightStore, options: CompileOptions) -> tuple[Any, Any, WeightStore]:
    """The host program of a rank, the module with its kernels, its weights."""
    own, store = copy_of(module), WeightStore()
    for name in weights:
        store.add(name, weights[name])
    target = get_target(options.target)
    ctx = PassContext(weights=store, chip=chip_of(target, options.chip), options=options)
    plan = target.pipeline(options)
    for stage in plan.model_part():
        run_stage(stage, own, ctx, Clock(), "each")
    main = copy_of(own)
    with main.context:
        strip_kernels(main)
    for stage in plan.main_part():
        run_stage(stage, main, ctx, Clock())
    return read_program(main), own, store


def run(program: Any, module: Any, store: WeightStore, inputs: list[Any], communicate: Any) -> list[Any]:
    kernels = functions(module)

    def kernel(name: str, buffers: Any, symbols: Any) -> None:
        block = kernels[name].regions[0].blocks[0]
        count = len(block.arguments)
        env = {f"d{i}": n for i, n in enumerate(symbols)}
        out = run_block(block, dict(zip(block.arguments, buffers[:count], strict=True)), env, store)
        for target, value in zip(buffers[count:], out, strict=True):
            target[...] = value

    with module.context, np.errstate(all="ignore"):
        return list(NumpyExecutor(program, store, kernel, communicate).run(inputs))


@pytest.mark.parametrize("target", CHIPS)
@pytest.mark.parametrize("mesh", ("tp:2", "dp:2,tp:2"))
@pytest.mark.parametrize("name", ("transformer", *MODELS))
def test_as_host_programs(name: str, mesh: str, target: str) -> None:
    w, rng = Weights(), np.random.default_rng(4)
    make, like = MODELS.get(name, (transformer, np.zeros((2, 5, 48), np.float32)))
    if name == "recurrent" and "dp" in mesh:
        return
    x = rng.integers(0, 50, like.shape) if like.dtype.kind == "i" else rng.standard_normal(like.shape)
    x = x.astype(like.dtype)
    module = module_of(make(w), F(like.shape, xt.dtype_name(like.dtype)))
    want = interpret(module, [x], w.store)
    axes = Mesh.parse(mesh)
    ranks = [rank_program(module, w.store, CompileOptions(target, CHIPS[target], mesh=mesh, rank=rank))
             for rank in range(axes.size)]
    results = SimulatedRanks(axes).run(
        lambda rank, talk: run(*ranks[rank], [of_batch(x, [x], axes, rank)], talk))
    for rank, got in enumerate(results):
        for a, b in zip(got, want, strict=True):
            close(a, of_batch(b, [x], axes, rank))
