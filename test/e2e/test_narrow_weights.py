"""Weights of few bits: they stay as narrow as the model has them, and products and gathers decode what they read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from narrow_models import TYPES, Narrow

import xcc
from xcc.dialects import xt
from xcc.driver.sources import load_source
from xcc.interpreter.executor import make_executor
from xcc.options import CompileOptions
from xcc.passes.base import PassContext
from xcc.passes.xt.graph.rewrite import name_of, walk_ops
from xcc.passes.xt.xt_fold import stored_bits
from xcc.targets.base import chip_of, get_target

CHIPS = {"cpu": "x86-64-v4", "nvptx": "sm_90a", "amdgcn": "gfx942"}


def bytes_kept(model: Any, target: str) -> int:
    """Bytes of weights and tables behind stage ``xt``, which are those of the artifact."""
    options = CompileOptions.make(target, None, None, chip=CHIPS[target])
    found = get_target(target)
    source, chip = load_source(model, options), chip_of(found, CHIPS[target])
    ctx = PassContext(weights=source.weights, chip=chip, options=options)
    for p in found.pipeline(options).upto("xt").stages[0].passes:
        p.run(source.module, ctx)
    with source.module.context:
        kinds = [xt.TensorType.of(op.results[0]) for op in walk_ops(source.module)
                 if name_of(op) == "weight" or name_of(op) == "constant" and not op.attributes["value"].is_splat]
        return sum(map(stored_bits, kinds)) // 8


@given(st.data())
@settings(max_examples=12, deadline=None)
def test_nothing_takes_more_bytes(data: Any) -> None:
    n = Narrow(data.draw(st.integers(0, 9)))
    depth, columns = (data.draw(st.sampled_from([64, 65, 96, 100, 129, 256])) for _ in range(2))
    block = data.draw(st.sampled_from([0, 16, 32, 64]))
    x = n.input((3, depth), ["m", depth])
    if data.draw(st.booleans()):
        n.product(data.draw(st.sampled_from(list(TYPES))), x, columns, data.draw(st.integers(0, 1)), block,
                  data.draw(st.booleans()))
    else:
        n.bits(x, columns, data.draw(st.sampled_from([2, 4, 8])), block or 128, data.draw(st.booleans()))
    for target in CHIPS:
        assert bytes_kept(n.model(), target) <= 1.05 * n.stored() + 64, target


def some_of_each(seed: int) -> Narrow:
    """Products and gathers of each format, blocks along both dims, sizes that are no multiples of anything."""
    n = Narrow(seed)
    wide, odd = n.input((5, 96), ["m", 96]), n.input((3, 37), [3, 37])
    n.product("INT4", wide, 64, 1, 32, True)
    n.product("UINT4", wide, 65, 0, 32, False)
    n.product("INT8", odd, 35, 1, 0, False)
    n.product("UINT8", wide, 40, 0, 0, True)
    n.product("FLOAT8E4M3FN", odd, 33, 0, 16, False)
    n.product("FLOAT4E2M1", wide, 64, 0, 16, False)
    n.bits(wide, 70, 4, 32, True)
    n.bits(odd, 33, 4, 16, False)
    n.bits(odd, 34, 2, 16, True)
    n.rows("INT4", 50, 48, 16)
    n.rows("INT8", 21, 33, 0)
    return n


def checked(n: Narrow, outputs: dict[str, Any]) -> None:
    for name, want in n.want.items():
        np.testing.assert_allclose(outputs[name], want, rtol=0, atol=2e-5 * np.abs(want).max(), err_msg=name)


def test_products_decode_what_they_read_on_this_cpu() -> None:
    n = some_of_each(0)
    compiled = xcc.compile(n.model(), target="cpu")
    program = compiled.artifact.program
    checked(n, compiled.run(n.feeds))
    rows = np.random.default_rng(1).normal(size=(130, 96)).astype(np.float32)      # more than a tile, which is kept
    again = compiled.run(n.feeds | {"x0": rows})
    few = compiled.run(n.feeds | {"x0": rows[-5:]})
    for name in ("y0", "y1", "y3", "y5", "y6"):
        assert again[name].shape == (130, n.want[name].shape[1])
        np.testing.assert_allclose(again[name][-5:], few[name], rtol=0, atol=2e-5 * np.abs(few[name]).max())
    assert not program.setup and not [b for b in program.buffers if b.kind == "kept"]
    assert sum(w.nbytes for w in compiled.artifact.weights.values()) <= 1.05 * n.stored() + 64


@pytest.mark.parametrize("target, chip", [("nvptx,code=ptx", "sm_80"), ("amdgcn", "gfx942")])
def test_products_decode_what_they_read_on_gpus(target: str, chip: str) -> None:
    n = some_of_each(2)
    compiled = xcc.compile(n.model(), target=target, chip=chip, cache=False, keep_ir=True)
    a = compiled.artifact
    compiled._executor = make_executor(a.program, a.members, a.weights, a.manifest)
    checked(n, compiled.run(n.feeds))
    assert sum(w.nbytes for w in a.weights.values()) <= 1.05 * n.stored() + 64


def test_filters_stay_narrow_on_gpus() -> None:
    n = Narrow(3)
    x = n.input((1, 32, 6, 7), [1, 32, 6, 7])
    n.convolution("INT8", x, 24, 3, 0, 0)
    n.convolution("INT4", x, 160, 1, 1, 16)
    n.convolution("FLOAT8E4M3FN", x, 16, 3, 0, 0)
    compiled = xcc.compile(n.model(), target="nvptx,code=ptx", chip="sm_80", cache=False, keep_ir=True)
    a = compiled.artifact
    compiled._executor = make_executor(a.program, a.members, a.weights, a.manifest)
    checked(n, compiled.run(n.feeds))
    assert sum(w.nbytes for w in a.weights.values()) <= 1.05 * n.stored() + 64
