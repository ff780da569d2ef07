"""What runs are predicted to take on meshes that no machine here has, and which mesh is taken."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kernel_cases import module_of
from shard_models import F, Weights, counts, linear
from sharded import check_model, copy_of
from test_sharded_models import perceptron

from xcc.diagnostics import UserError
from xcc.dialects import xt
from xcc.driver.mesh_choice import choose_mesh, table
from xcc.driver.predict import Prediction, predict
from xcc.options import CompileOptions
from xcc.passes.base import PassContext
from xcc.passes.xt.sharding.cost import costs_of
from xcc.runtime.mesh import Mesh
from xcc.symbolic import sym
from xcc.targets.base import chip_of, get_target

CHIP = chip_of(get_target("nvptx"), "sm_90a")


def predicted(module: Any, mesh: str, chip: Any = CHIP) -> Prediction:
    return predict(copy_of(module), PassContext(chip=chip), Mesh.parse(mesh))


def wide(layers: int = 2, batch: int = 8) -> Any:
    """Large enough that ranks gain by sharing it: 8 x 1024 tokens of 4096."""
    def build(x: Any) -> Any:
        for n in range(layers):
            up, down = xt.weight(f"up{n}", (4096, 16384), "f16"), xt.weight(f"down{n}", (16384, 4096), "f16")
            h = xt.gelu(xt.dot_general(x, up, lhs_contract=(2,), rhs_contract=(0,)))
            x = xt.add(x, xt.dot_general(h, down, lhs_contract=(2,), rhs_contract=(0,)))
        return x

    return module_of(build, F((batch, 1024, 4096), "f16"))


def test_more_ranks_take_less_until_they_are_afar() -> None:
    module = wide()
    one, two, eight = (predicted(module, mesh) for mesh in ("", "tp:2", "tp:8"))
    assert one.seconds > 1.5 * two.seconds > 3 * eight.seconds and one.collectives == 0 < eight.collectives
    assert (one.weights, two.weights) == (2 * 2 * 4096 * 16384 * 2, 2 * 4096 * 16384 * 2)
    assert predicted(module, "tp:1024").seconds > predicted(module, "dp:8,tp:128").seconds > eight.seconds / 128


def test_what_is_given_is_read_of_memory_once() -> None:
    """A cache of 2^25 numbers that one more comes behind: read and written; each of two ranks slices its part of it."""
    module = module_of(lambda past, new: xt.concatenate(past, new, axis=2),
                       F((8, 32, 1024, 128), "f16"), F((8, 32, 1, 128), "f16"))
    copied = 2 * 2**26 / (0.9 * CHIP.bandwidth)
    assert predicted(module, "").seconds == pytest.approx(copied, rel=1e-2)
    assert predicted(module, "dp:2").seconds == pytest.approx(copied / 2, rel=1e-2)


def test_a_pipeline_divides_weights_and_time_where_a_batch_goes_in_parts() -> None:
    module, alone = wide(), wide(batch=1)
    for whole, parts in ((module, True), (alone, False)):
        one, cut = predicted(whole, ""), predicted(whole, "pp:2")
        assert cut.weights == one.weights // 2
        assert 0.5 * one.seconds < cut.seconds < one.seconds if parts else one.seconds < cut.seconds


@pytest.mark.parametrize(("mesh", "axes", "afar"), [
    ("tp:8", "tp", False), ("tp:16", "tp", True), ("dp:2,tp:8", "tp", False), ("dp:2,tp:8", "dp", True),
    ("dp:2,tp:4", "dp", False)])
def test_which_ranks_are_on_other_machines(mesh: str, axes: str, afar: bool) -> None:
    near = costs_of(CHIP, Mesh.parse(mesh), (axes,), {})
    assert near.afar == afar and near.link == (CHIP.network_bandwidth if afar else CHIP.link_bandwidth)


@pytest.mark.parametrize(("kind", "nbytes", "measured"), [
    ("all_reduce", 64 << 10, 2.6), ("all_reduce", 256 << 10, 3.8), ("all_reduce", 1 << 20, 5.1),
    ("all_reduce", 32 << 20, 50.0), ("all_gather", 32_768_000, 40.0)])
def test_two_ranks_of_one_machine_exchange(kind: str, nbytes: int, measured: float) -> None:
    """What was measured on two H100s, within a third; by the library it takes longer, and it takes longer afar."""
    near = costs_of(CHIP, Mesh.parse("tp:2"), ("tp",), {}).collective(kind, nbytes)
    assert 2 / 3 * measured < near * 1e6 < 4 / 3 * measured
    library = costs_of(replace(CHIP, exchange_latency=0), Mesh.parse("tp:2"), ("tp",), {}).collective(kind, nbytes)
    assert near < library < costs_of(CHIP, Mesh.parse("tp:2,dp:8"), ("tp",), {}).collective(kind, nbytes)


@pytest.mark.parametrize(("chip", "batch", "wanted"), [
    ("sm_90a,link_bandwidth=1e6", 8, "dp:4"), ("sm_90a", "batch", "dp:4"), ("sm_90a", 3, "tp:4"),
    ("sm_90a,memory_bytes=6000,link_bandwidth=1e6", "batch", "tp:4")])
def test_the_mesh_that_is_taken(chip: str, batch: Any, wanted: str, tmp_path: Path) -> None:
    model = perceptron(tmp_path / "m.onnx", batch)
    options, found = choose_mesh(model, CompileOptions("nvptx", chip, mesh="auto:4"))
    lines = table(found)
    assert options.mesh == wanted and lines[1].startswith(wanted) and lines[-1].startswith("one rank")


def test_a_model_that_fits_on_no_mesh(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="mesh auto:2: no mesh of 2 ranks has room for the weights on sm_90a"):
        choose_mesh(perceptron(tmp_path / "m.onnx"), CompileOptions("nvptx", "sm_90a,memory_bytes=100", mesh="auto:2"))


def test_sixty_four_ranks() -> None:
    """A batch in eight parts, and a layer whose matrices eight ranks share each."""
    w = Weights()
    x = np.random.default_rng(0).standard_normal((8, 2, 64)).astype(np.float32)

    def build(v: Any) -> Any:
        return xt.add(v, linear(w, xt.gelu(linear(w, v, 128, "up")), 64, "down"))

    module = module_of(build, F((sym("batch"), 2, 64), "f32"))
    assert counts(check_model(module, [x], "dp:8,tp:8", w.store, chip="sm_90a")) == {"all_reduce": 1}
