"""Every case of xt-to-linalg through the GPU path: tile, distribute, and the interpreter of gpu-stage kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import linalg_cases
import numpy as np
import pytest
from schedules import changed
from test_xt_to_linalg import *  # noqa: F403
from test_xt_to_linalg_places import *  # noqa: F403

from xcc import symbolic
from xcc._mlir import ir
from xcc.dialects import xt
from xcc.dialects.xt.base import dims_from_attr
from xcc.interpreter.kernel import run_kernel
from xcc.passes.base import PassContext, parse_pass
from xcc.passes.linalg.schedule.schedule import Schedule
from xcc.passes.upstream import Upstream
from xcc.targets.gpu_module import kernel_functions, kernel_launches
from xcc.targets.nvptx.chip import chips
from xcc.targets.nvptx.pipeline import kernel_pipeline

CHIP = "sm_80"
TILE: dict[str, Any] = {}       # entries that a test gives the schedule


class _Adapt:
    """Changes the schedules that `configure` chose."""

    def run(self, module: Any, ctx: Any) -> None:
        for f in module.body.operations:
            if TILE:
                schedule = changed(Schedule.from_attr(f.attributes["xcc.config"]), **TILE)
                f.attributes["xcc.config"] = schedule.to_attr()


def run_on_interpreter(module: Any, name: str, inputs: Sequence[Any], shapes: Sequence[Sequence[int]],
                       dtypes: Sequence[Any], symbols: Mapping[str, int]) -> list[Any]:
    """The same contract as linalg_exec.run_kernel."""
    outputs = [np.frombuffer(b"\x5a" * (int(np.prod(s)) * np.dtype(d).itemsize), d).reshape(s).copy()
               for s, d in zip(shapes, dtypes, strict=True)]
    with module.context:
        for f in list(module.body.operations):
            if ir.StringAttr(f.attributes["sym_name"]).value != name:
                f.operation.erase()
        module.context.allow_unregistered_dialects = True
        ctx = PassContext(chip=chips()[CHIP])
        cleanup = [Upstream(pipeline="canonicalize"), Upstream(pipeline="cse")]
        for p in (*cleanup, parse_pass("configure{target=nvptx}"), _Adapt(), parse_pass("tile"), *cleanup):
            p.run(module, ctx)
        kernel_pipeline().upto("gpu").run(module, ctx)
        assert "warpgroup" not in TILE or '"xtg.wgmma"' in str(module)
        for function, launch in zip(kernel_functions(module), kernel_launches(module), strict=True):
            grid = symbolic.evaluate(launch.grid[0], symbols)
            arrays = _arguments(function, [*map(np.ascontiguousarray, inputs), *outputs], symbols)
            values = [symbols[s.value] for s in function.attributes["xt.symbols"]]
            if grid:
                run_kernel(module, launch.entry, (grid, 1, 1), launch.block, arrays, values,
                           dynamic_shared=launch.shared_bytes)
    return outputs


def _arguments(function: Any, arrays: list[Any], symbols: Mapping[str, int]) -> list[Any]:
    """Views of `arrays` in the shapes that the kernel gives them; i1 is i8 in memory."""
    dims = [[symbolic.evaluate(d, symbols) for d in dims_from_attr(a)]
            for name in ("xt.arg_dims", "xt.result_dims") for a in function.attributes[name]]
    views = [a.reshape(d) for a, d in zip(arrays, dims, strict=True)]
    return [v.view(np.int8) if v.dtype == np.bool_ else v for v in views]


@pytest.fixture(autouse=True)
def gpu_path(monkeypatch):
    monkeypatch.setattr(linalg_cases, "run_kernel", run_on_interpreter)


@pytest.mark.parametrize("tile, threads", [((64, 32), 128), ((128, 32), 256)])
def test_f16_convolution_of_warpgroups(tile: tuple[int, int], threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Padding and ragged tiles: gathers into the memory that wgmma reads."""
    monkeypatch.setitem(globals(), "CHIP", "sm_90a")
    monkeypatch.setitem(globals(), "TILE", {"block": tile, "vector": tile, "reduce": ((64, 1, 1),), "threads": threads,
                                            "stages": 4, "warpgroup": True})
    x = (np.random.default_rng(3).standard_normal((2, 7, 7, 64)) / 4).astype(np.float16)
    w = (np.random.default_rng(4).standard_normal((3, 3, 64, 24)) / 8).astype(np.float16)
    linalg_cases.check(lambda a, b: xt.convolution(a, b, layout="NHWC", filter="HWIO", low=(1, 1), high=(1, 1)), x, w,
                       rtol=4e-3, atol=4e-3)


@pytest.mark.parametrize("rows, columns, depth", [(128, 256, 320), (100, 136, 1024)])
def test_epilogue_of_warpgroups(rows: int, columns: int, depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Last steps without copies, and a residual that is loaded before them or, where steps are few, behind them."""
    monkeypatch.setitem(globals(), "CHIP", "sm_90a")
    monkeypatch.setitem(globals(), "TILE", {"block": (64, 128), "vector": (64, 128), "reduce": ((64,),), "threads": 128,
                                            "stages": 4, "warpgroup": True})
    draw = np.random.default_rng(depth).standard_normal
    shapes: tuple[tuple[int, ...], ...] = (rows, depth), (columns, depth), (rows, columns), (columns,)
    x, w, r, b = ((draw(s) / 16).astype(np.float16) for s in shapes)
    linalg_cases.check(lambda x, w, r, b: xt.add(xt.tanh(xt.add(xt.dot_general(
        x, w, lhs_contract=(1,), rhs_contract=(1,)), b)), r), x, w, r, b, rtol=4e-3, atol=2e-3)


@pytest.mark.parametrize("channels, options", [
    (64, {"low": (1, 1), "high": (1, 1)}),              # whole steps of one tap
    (24, {"low": (1, 1), "high": (1, 1), "strides": (2, 2)}),   # runs of 8 channels, several taps a step
    (3, {"low": (1, 0), "high": (0, 1)}),               # element by element
    (16, {"low": (1, 1), "high": (1, 1), "groups": 2}),
])
def test_f16_convolution_by_matrix_instructions(channels: int, options: dict[str, Any]) -> None:
    """Padding, odd maps and ragged tiles on the flattened path."""
    x = (np.random.default_rng(3).standard_normal((2, 7, 7, channels)) / 4).astype(np.float16)
    inner = channels // int(options.get("groups", 1))
    w = (np.random.default_rng(4).standard_normal((3, 3, inner, 24)) / 8).astype(np.float16)
    linalg_cases.check(lambda a, b: xt.convolution(a, b, layout="NHWC", filter="HWIO", **options), x, w, rtol=4e-3,
                       atol=4e-3, dynamic="groups" not in options)


def _gelu(x):
    """With tanh, computed in f32."""
    w = xt.convert(x, dtype="f32")
    half, one, c, d = (xt.constant(v, dtype="f32") for v in (0.5, 1.0, 0.044715, 0.7978845608))
    u = xt.mul(xt.add(w, xt.mul(xt.mul(xt.mul(w, w), w), c)), d)
    return xt.convert(xt.mul(xt.mul(w, half), xt.add(xt.tanh(u), one)), dtype="f16")


def _softmax(x):
    w = xt.convert(x, dtype="f32")
    e = xt.exp(xt.sub(w, xt.reduce(w, kind="max", axes=(1,), keepdims=True)))
    return xt.convert(xt.div(e, xt.reduce(e, kind="sum", axes=(1,), keepdims=True)), dtype="f16")


@pytest.mark.parametrize("build", [xt.exp, xt.sigmoid, xt.tanh, _gelu, _softmax])
def test_short_functions_of_f16(build):
    """Functions whose results are f16 take the short forms of narrow-math, across the whole range."""
    far = np.geomspace(6e-8, 10, 1000).astype(np.float16)
    x = np.concatenate([far, -far, [0.0, 300.0, -300.0]]).astype(np.float16)
    linalg_cases.check(build, np.stack([x[:2000], np.roll(x, 7)[:2000]]), rtol=1e-3,
                       atol=3e-7)      # the reference's 1 + tanh cancels
