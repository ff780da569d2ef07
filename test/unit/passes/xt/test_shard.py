"""Whole programs of 2, 3 and 4 ranks give what one gives; which collectives they have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernel_cases import module_of
from shard_models import MODELS, F, Weights, counts, linear, transformer
from sharded import FAST, check_model, close, copy_of, names_of, sharded

from xcc.diagnostics import UserError
from xcc.dialects import xt
from xcc.dialects.xt.interpret import interpret
from xcc.dialects.xt.interpret_ranks import interpret_ranks
from xcc.driver.predict import predict
from xcc.passes.base import PassContext
from xcc.passes.xt.shard import divide
from xcc.runtime.mesh import Mesh
from xcc.symbolic import sym
from xcc.targets.base import chip_of, get_target

SLOW = "sm_90a,link_latency=20000,exchange_latency=20000"


@pytest.mark.parametrize("ranks", (2, 3, 4))
@pytest.mark.parametrize("fused", (False, True))
def test_transformers_have_two_sums_a_layer(ranks: int, fused: bool) -> None:
    w = Weights()
    x = np.random.default_rng(1).standard_normal((2, 5, 48)).astype(np.float32)
    module = module_of(transformer(w, fused=fused), F((2, 5, 48), "f32"))
    for chip in (FAST, SLOW):
        names = check_model(module, [x], f"tp:{ranks}", w.store, chip=chip)
    assert counts(names) == {"all_reduce": 4}


@pytest.mark.parametrize("mesh", ("tp:2", "tp:3", "tp:4", "dp:2", "dp:2,tp:2", "tp:2,dp:2", "dp:2,tp:3", "ep:2,tp:2",
                                  "pp:3", "dp:2,pp:2", "pp:2,tp:2"))
def test_transformer_of_any_batch_on_meshes(mesh: str) -> None:
    w = Weights()
    x = np.random.default_rng(1).standard_normal((4, 3, 48)).astype(np.float32)
    module = module_of(transformer(w, 1, shared=6), F((sym("batch"), sym("s"), 48), "f32"))
    names = check_model(module, [x], mesh, w.store, chip=SLOW)
    if "pp" not in mesh:
        assert counts(names).get("all_reduce", 0) == {"dp:2": 0, "ep:2,tp:2": 4}.get(mesh, 2)


def test_stages_take_as_long() -> None:
    """Each rank has a layer, with its weights; the residual goes on between them."""
    w = Weights()
    module = module_of(transformer(w, 4), F((1, 8, 48), "f32"))
    lines: list[str] = []
    modules, stores = sharded(module, "pp:4", w.store, chip=SLOW, note=lines.append)
    for own in modules:
        names = names_of(own)
        assert names.count("dot_general") == 6 and names.count("attention") == 1
        assert names.count("permute") == 3 and names.count("collective_broadcast") == 1


@pytest.mark.parametrize(("mesh", "batch", "parts"), [("pp:2", 4, 4), ("pp:3", 8, 4), ("dp:2,pp:2", 6, 3),
                                                       ("pp:2", 1, 1), ("pp:2", 7, 1)])
def test_a_batch_goes_through_stages_in_parts(mesh: str, batch: int, parts: int) -> None:
    """A stage sends on what it made of one part before it begins the next; the last one joins the results."""
    w = Weights()
    x = np.random.default_rng(1).standard_normal((batch, 64, 48)).astype(np.float32)
    module = module_of(transformer(w, 2), F(x.shape, "f32"))
    names = check_model(module, [x], mesh, w.store)
    stages = dict(Mesh.parse(mesh).axes)["pp"]
    each, more = divmod(names.count("permute"), parts)
    assert each >= stages - 1 and more == 0 and names.count("collective_broadcast") == 1
    if stages == 2:
        assert [n for n in names if n in ("permute", "attention")] == ["attention", "permute"] * parts


def test_parts_of_a_batch_that_know_of_each_other_stay_together() -> None:
    w = Weights()

    def build(x: Any) -> Any:
        x = linear(w, xt.gelu(linear(w, x, 192)), 48)
        return xt.sub(x, xt.reduce(x, kind="max", axes=(0,), keepdims=True))

    x = np.random.default_rng(1).standard_normal((4, 64, 48)).astype(np.float32)
    assert check_model(module_of(build, F(x.shape, "f32")), [x], "pp:2", w.store).count("permute") == 1


@pytest.mark.parametrize(("ranks", "wanted"), [(3, {"all_gather": 2, "reduce_scatter": 2}), (2, {"all_reduce": 2})])
def test_a_long_sequence_is_split_where_that_is_cheaper(ranks: int, wanted: dict[str, int]) -> None:
    """With weights that are small beside what is computed of them the sums are scattered along the sequence; two ranks
    exchange them, which costs less."""
    w = Weights()
    module = module_of(transformer(w, 1), F((1, 4092, 48), "f32"))
    names = names_of(sharded(module, f"tp:{ranks}", w.store, chip=FAST)[0][0])
    assert counts(names) == wanted


def test_weights_are_shared() -> None:
    w = Weights()
    module = module_of(transformer(w), F((1, 5, 48), "f32"))
    modules, stores = sharded(module, "tp:4", w.store, chip=SLOW)
    for rank, own in enumerate(modules):
        names = {n.value for op in own.body.operations[0].operation.regions[0].blocks[0]
                 if op.operation.name == "xt.weight" for n in [op.operation.attributes["name"]]}
        held = sum(stores[rank][n].nbytes for n in names)
        whole = sum(w.store[n].nbytes for n in w.store)
        assert held < 0.3 * whole
        large = [n for n in names if stores[rank][n].nbytes > 2000]
        assert all(n.endswith(".tp") or n.split(".")[-1].isdigit() for n in large), large


@pytest.mark.parametrize(("rows", "memory", "whole"), [(8, 80, True), (8, 1e-6, False), (800, 80, False)])
def test_a_small_table_is_whole_where_memory_is_plenty(rows: int, memory: float, whole: bool) -> None:
    """And no more than an eighth of what a rank holds besides; what is multiplied is not."""
    w = Weights()

    def build(x: Any) -> Any:
        table = w(rows, 256, name="table")
        return linear(w, xt.gather(table, x, axis=0), 256, "head")

    module = module_of(build, F((4, 7), "i64"))
    chip = f"{SLOW},memory_bytes={int(memory * 1e9)}"
    x = np.random.default_rng(2).integers(0, rows, (4, 7))
    check_model(module, [x], "tp:2", w.store, chip=chip)
    held = sharded(module, "tp:2", w.store, chip=chip)[1][0]
    assert ("table.tp" not in held) == whole and "head.tp" in held


@pytest.mark.parametrize("mesh", ("tp:2", "tp:3", "tp:4", "dp:2", "dp:2,tp:2", "pp:2", "pp:3", "pp:2,tp:2"))
@pytest.mark.parametrize("name", MODELS)
def test_models(name: str, mesh: str) -> None:
    make, like = MODELS[name]
    w, rng = Weights(), np.random.default_rng(4)
    x = rng.integers(0, 50, like.shape) if like.dtype.kind == "i" else rng.standard_normal(like.shape)
    module = module_of(make(w), F(like.shape, xt.dtype_name(like.dtype)))
    if name == "recurrent" and "dp" in mesh:
        with pytest.raises(UserError, match="the first dim of the first input, 5, is not known to divide"):
            sharded(module, mesh, w.store)
        return
    for chip in (FAST, SLOW):
        check_model(module, [x.astype(like.dtype)], mesh, w.store, chip=chip)


def test_what_is_said_of_inputs_outputs_and_weights() -> None:
    w = Weights()
    x = np.random.default_rng(1).standard_normal((6, 24)).astype(np.float32)
    module = module_of(lambda v: linear(w, xt.gelu(linear(w, v, 48, "a")), 24, "b"), F((6, 24), "f32"))
    names = check_model(module, [x], "tp:2", w.store, ["a=whole", "b=tp:1"], SLOW)
    assert "all_reduce" not in names
    modules, stores = sharded(module, "tp:2", w.store, ["a=tp:0"], SLOW)
    assert stores[0]["a.tp"].shape == (12, 48) and np.shares_memory(stores[1]["a.tp"], w.store["a"])
    want = interpret(module, [x], w.store)[0]
    for results in interpret_ranks(modules, [[x]] * 2, stores):
        close(results[0], want)


def test_weights_of_loops_are_whole() -> None:
    """They are counted, and nothing else can be said of them."""
    w = Weights()

    def build(x: Any) -> Any:
        (h,) = xt.while_([x], lambda h: xt.compare(xt.reduce(h, kind="max"), xt.scalar(4, "f32"), direction="lt"),
                         lambda h: (xt.add(h, xt.exp(linear(w, h, 24, "inner"))),))
        return linear(w, h, 48, "outer")

    x = np.random.default_rng(1).standard_normal((6, 24)).astype(np.float32)
    module = module_of(build, F((6, 24), "f32"))
    check_model(module, [x], "tp:2", w.store, ["inner*=whole", "outer=tp:1"])
    inner, outer = 4 * (24 * 24 + 24), 4 * (24 * 48 + 48)
    ctx = PassContext(chip=chip_of(get_target("nvptx"), FAST))
    assert predict(copy_of(module), ctx, Mesh.parse("tp:2"), ["outer=tp:1"]).weights == inner + outer // 2
    report, = divide(copy_of(module), ctx, Mesh.parse("tp:2"), 0, ["outer=tp:1"])
    assert f", {inner + outer // 2} of {inner + outer} bytes of weights a rank" in report.lines[0]
    with pytest.raises(UserError, match="'inner' is read in a loop or a branch, which each rank computes whole"):
        sharded(module, "tp:2", w.store, ["inner=tp:1"])


def test_a_size_that_is_not_known_is_asked_for() -> None:
    module = module_of(xt.exp, F((sym("n"), 24), "f32"))
    with pytest.raises(UserError, match="whose dim 0 is not known to divide among 2 ranks; .* --dim 'n=64'"):
        sharded(module, "tp:2", None, ["*=tp:0"])


def test_two_axes_split_one_weight_as_is_said() -> None:
    w = Weights()
    x = np.random.default_rng(1).standard_normal((6, 24)).astype(np.float32)
    module = module_of(lambda v: linear(w, v, 48, "a"), F((6, 24), "f32"))
    shard = ["a=ep:0", "a=tp:1", "a.bias=whole"]
    check_model(module, [x], "ep:2,tp:2", w.store, shard, SLOW)
    _, stores = sharded(module, "ep:2,tp:2", w.store, shard, SLOW)
    np.testing.assert_array_equal(stores[3]["a.ep.tp"], w.store["a"][12:, 24:])


def test_ranks_decide_alike() -> None:
    """The ops of all ranks are the same, in the same order."""
    w = Weights()
    module = module_of(transformer(w, fused=True), F((2, 5, 48), "f32"))
    modules, _ = sharded(module, "dp:2,tp:2", w.store)
    assert len({tuple(names_of(m)) for m in modules}) == 1
