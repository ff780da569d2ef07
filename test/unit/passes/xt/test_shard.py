"""Whole programs of 2, 3 and 4 ranks give what one gives; which collectives they have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from kernel_cases import module_of
from sharded import FAST, check_model, close, names_of, sharded

from xcc._mlir import ir
from xcc.diagnostics import UserError
from xcc.dialects import xt
from xcc.dialects.xt.interpret import interpret
from xcc.dialects.xt.interpret_ranks import interpret_ranks
from xcc.runtime.mesh import Mesh
from xcc.symbolic import sym
from xcc.weights import WeightStore

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
F = xt.TensorType
SLOW = "sm_90a"


class Weights:
    """Weights drawn as they are asked for; their names count up."""

    def __init__(self, seed: int = 0) -> None:
        self.store, self.rng = WeightStore(), np.random.default_rng(seed)

    def __call__(self, *shape: int, name: str = "w") -> Any:
        value = (self.rng.standard_normal(shape) / max(shape[0], 1) ** 0.5).astype(np.float32)
        return xt.weight(self.store.add(name, value), shape, "f32")


def linear(w: Weights, x: Any, n: int, name: str = "w") -> Any:
    t = F.of(x)
    y = xt.dot_general(x, w(int(t.shape[-1]), n, name=name), lhs_contract=(t.rank - 1,), rhs_contract=(0,))
    return xt.add(y, w(n, name=f"{name}.bias"))


def norm(w: Weights, x: Any) -> Any:
    n = int(F.of(x).shape[-1])
    return xt.layer_norm(x, w(n, name="norm"), w(n, name="norm"), axes=(-1,))


def attend(w: Weights, x: Any, heads: int, shared: int, fused: bool = False) -> Any:
    """x [b, s, h]; `fused`: q, k and v of one matrix."""
    b, s, width = F.of(x).shape
    size = int(width) // heads
    if fused:
        a = linear(w, x, 3 * int(width), "qkv")
        parts = [xt.slice_(a, starts=(0, 0, i * int(width)), limits=(b, s, (i + 1) * int(width))) for i in range(3)]
        shared = heads
    else:
        parts = [linear(w, x, n * size, name) for n, name in ((heads, "q"), (shared, "k"), (shared, "v"))]
    q, k, v = (xt.transpose(xt.reshape(p, shape=(b, s, n, size)), perm=(0, 2, 1, 3))
               for p, n in zip(parts, (heads, shared, shared), strict=True))
    y = xt.transpose(xt.attention(q, k, v, causal=True), perm=(0, 2, 1, 3))
    return linear(w, xt.reshape(y, shape=(b, s, width)), int(width), "o")


def transformer(w: Weights, layers: int = 2, fused: bool = False, shared: int = 12) -> Callable[[Any], Any]:
    def build(x: Any) -> Any:
        width = int(F.of(x).shape[-1])
        for _ in range(layers):
            x = xt.add(x, attend(w, norm(w, x), 12, shared, fused))
            x = xt.add(x, linear(w, xt.gelu(linear(w, norm(w, x), 4 * width, "up")), width, "down"))
        return norm(w, x)

    return build


def counts(names: list[str]) -> dict[str, int]:
    return {c: names.count(c) for c in COLLECTIVES if c in names}


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


def test_a_long_sequence_is_split_where_that_is_cheaper() -> None:
    """With weights that are small beside what is computed of them the sums are scattered along the sequence."""
    w = Weights()
    module = module_of(transformer(w, 1), F((1, 4096, 48), "f32"))
    names = names_of(sharded(module, "tp:2", w.store, chip=FAST)[0][0])
    assert counts(names) == {"all_gather": 2, "reduce_scatter": 2}


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


def convnet(w: Weights) -> Callable[[Any], Any]:
    def build(x: Any) -> Any:
        for n, groups in ((24, 1), (24, 24), (48, 1), (48, 12)):
            c = int(F.of(x).shape[1])
            x = xt.convolution(x, w(n, c // groups, 3, 3), low=(1, 1), high=(1, 1), groups=groups)
            x = xt.group_norm(x, w(n), w(n), groups=12)
            x = xt.maximum(x, xt.scalar(0, "f32"))
        x = xt.reduce_window(x, kind="max", window=(1, 1, 2, 2), strides=(1, 1, 2, 2))
        x = xt.reduce(x, kind="sum", axes=(2, 3))
        return linear(w, x, 10)

    return build


def recurrent(w: Weights) -> Callable[[Any], Any]:
    def build(x: Any) -> Any:
        h = xt.lstm(x, w(1, 96, 24), w(1, 96, 24), w(1, 192))[0]
        h = xt.reshape(h, shape=(5, 4, 24))
        return xt.softmax(linear(w, h, 24), axis=-1)

    return build


def experts(w: Weights) -> Callable[[Any], Any]:
    """All experts compute, their results are weighted: the sum over experts is one of partial results."""
    def build(x: Any) -> Any:
        gates = xt.softmax(linear(w, x, 12), axis=-1)
        h = xt.dot_general(x, w(12, 24, 48), lhs_contract=(1,), rhs_contract=(1,))      # [n, e, f]
        h = xt.maximum(h, xt.scalar(0, "f32"))
        h = xt.mul(h, xt.reshape(gates, shape=(8, 12, 1)))
        return xt.dot_general(h, w(12, 48, 24), lhs_contract=(1, 2), rhs_contract=(0, 1))

    return build


def embedding(w: Weights) -> Callable[[Any], Any]:
    def build(n: Any) -> Any:
        table = w(50, 24, name="table")
        x = xt.add(xt.gather(table, n), xt.reshape(w(5, 24), shape=(1, 5, 24)))
        x = xt.concatenate(x, xt.reverse(x, axes=(1,)), axis=2)
        return xt.dot_general(linear(w, x, 24), table, lhs_contract=(2,), rhs_contract=(1,))

    return build


def control(w: Weights) -> Callable[[Any], Any]:
    def build(x: Any) -> Any:
        h = linear(w, x, 24)
        (h,) = xt.while_([h], lambda h: xt.compare(xt.reduce(h, kind="max"), xt.scalar(4, "f32"), direction="lt"),
                         lambda h: (xt.add(h, xt.exp(linear(w, xt.sigmoid(h), 24))),))
        _, ys = xt.scan([xt.reduce(h, kind="sum", axes=(0,))], [h],
                        lambda c, s: ((xt.add(c[0], xt.mul(s[0], s[0])),), (xt.sub(s[0], c[0]),)))
        return linear(w, ys, 48)

    return build


def quantised(w: Weights) -> Callable[[Any], Any]:
    def build(x: Any) -> Any:
        codes = w.store.add("codes", np.random.default_rng(3).integers(-8, 8, (24, 48)).astype(np.int8))
        scales = xt.weight(w.store.add("scales", np.full((24, 6), 0.1, np.float32)), (24, 6), "f32")
        matrix = xt.dequantize(xt.weight(codes, (24, 48), "i8"), scales, axis=1, block=8)
        return linear(w, xt.gelu(xt.dot_general(x, matrix, lhs_contract=(1,), rhs_contract=(0,))), 24)

    return build


MODELS: dict[str, tuple[Callable[[Weights], Callable[..., Any]], Any]] = {
    "convnet": (convnet, np.zeros((2, 12, 8, 8), np.float32)),
    "recurrent": (recurrent, np.zeros((5, 4, 24), np.float32)),
    "experts": (experts, np.zeros((8, 24), np.float32)),
    "embedding": (embedding, np.zeros((2, 5), np.int64)),
    "control": (control, np.zeros((8, 24), np.float32)),
    "quantised": (quantised, np.zeros((6, 24), np.float32)),
}


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


def test_two_axes_split_one_weight_as_is_said() -> None:
    w = Weights()
    x = np.random.default_rng(1).standard_normal((6, 24)).astype(np.float32)
    module = module_of(lambda v: linear(w, v, 48, "a"), F((6, 24), "f32"))
    shard = ["a=ep:0", "a=tp:1", "a.bias=whole"]
    check_model(module, [x], "ep:2,tp:2", w.store, shard, SLOW)
    _, stores = sharded(module, "ep:2,tp:2", w.store, shard, SLOW)
    np.testing.assert_array_equal(stores[3]["a.ep.tp"], w.store["a"][12:, 24:])


def cached(w: Weights, heads: int = 12) -> Any:
    """A step of attention over keys and values that the model holds: x [1, 1, 48] at the place that `at` says."""
    def build(x: Any, at: Any, keys: Any, values: Any) -> Any:
        zero = xt.scalar(0, "i64")
        parts = [xt.reshape(linear(w, x, 48, name), shape=(1, heads, 1, 4)) for name in ("q", "k", "v")]
        keys, values = (xt.dynamic_update_slice(held, new, zero, zero, at, zero)
                        for held, new in ((keys, parts[1]), (values, parts[2])))
        mask = xt.compare(xt.iota(shape=(8,), axis=0), at, direction="le")
        y = xt.attention(parts[0], keys, values, xt.reshape(mask, shape=(1, 1, 1, 8)))
        return linear(w, xt.reshape(y, shape=(1, 1, 48)), 48, "o"), keys, values

    return build


def with_state(module: Any) -> Any:
    """Arguments 2 and 3 are held by the model, results 1 and 2 are what it has then."""
    with module.context:
        main = module.body.operations[0].operation
        text = ir.StringAttr.get
        main.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(d) for d in (
            {"xt.name": text("x")}, {"xt.name": text("at")}, {"xt.name": text("keys"), "xt.state": text("k0")},
            {"xt.name": text("values"), "xt.state": text("v0")})])
        main.attributes["res_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(d) for d in (
            {"xt.name": text("y")}, {"xt.name": text("k"), "xt.updates": text("keys")},
            {"xt.name": text("v"), "xt.updates": text("values")})])
    return module


def growing(w: Weights) -> Any:
    """The same over keys and values that are given, and given back with those of x."""
    def build(x: Any, keys: Any, values: Any) -> Any:
        parts = [xt.reshape(linear(w, x, 48, name), shape=(1, 12, 1, 4)) for name in ("q", "k", "v")]
        keys, values = (xt.concatenate(held, new, axis=2) for held, new in ((keys, parts[1]), (values, parts[2])))
        y = xt.attention(parts[0], keys, values)
        return linear(w, xt.reshape(y, shape=(1, 1, 48)), 48, "o"), keys, values

    return build


@pytest.mark.parametrize("grows", (False, True))
@pytest.mark.parametrize("whole", (False, True))
def test_caches_that_are_given_are_split_as_they_are_used(grows: bool, whole: bool) -> None:
    """Each rank is given the keys and values of its heads, and gives them back; of all where that is said."""
    w, rng = Weights(), np.random.default_rng(7)
    held = F((1, 12, sym("past") if grows else 8, 4), "f32")
    given = [F((1, 1, 48), "f32"), *([] if grows else [F((), "i64")]), held, held]
    module = module_of(growing(w) if grows else cached(w), *given)
    names = [*(["x"] if grows else ["x", "at"]), "keys", "values"]
    with module.context:
        main, text = module.body.operations[0].operation, ir.StringAttr.get
        results = [{"xt.name": text("y")}, *({"xt.name": text(f"new {n}")} | ({} if grows else {"xt.updates": text(n)})
                                             for n in ("keys", "values"))]
        main.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get({"xt.name": text(n)}) for n in names])
        main.attributes["res_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(d) for d in results])
    states = [rng.standard_normal((1, 12, 8, 4)).astype(np.float32) for _ in range(2)]
    shard = ["new *=whole" if grows else "keys=whole", "values=whole"] if whole else []
    modules, stores = sharded(module, "tp:3", w.store, shard, SLOW)
    own = [[s if whole else np.split(s, 3, 1)[rank] for s in states] for rank in range(3)]
    for step in range(2):
        x = [rng.standard_normal((1, 1, 48)).astype(np.float32), *([] if grows else [np.int64(step)])]
        want, *states = interpret(module, [*x, *states], w.store)
        out = interpret_ranks(modules, [[*x, *o] for o in own], stores)
        own = [r[1:] for r in out]
        for rank, (y, *rest) in enumerate(out):
            close(y, want)
            for got, state in zip(rest, states, strict=True):
                close(got, state if whole else np.split(state, 3, 1)[rank])


@pytest.mark.parametrize("ranks", (2, 3, 4))
def test_what_a_model_holds_is_split_as_it_is_used(ranks: int) -> None:
    """Each rank holds the keys and values of its heads."""
    w, rng = Weights(), np.random.default_rng(7)
    held = F((1, 12, 8, 4), "f32")
    module = with_state(module_of(cached(w), F((1, 1, 48), "f32"), F((), "i64"), held, held))
    states = [rng.standard_normal(held.shape).astype(np.float32) for _ in range(2)]
    for name, value in zip(("k0", "v0"), states, strict=True):
        w.store.add(name, value)
    modules, stores = sharded(module, f"tp:{ranks}", w.store, chip=SLOW)
    assert counts(names_of(modules[0])) == {"all_reduce": 1}
    own = [[store["k0.tp"], store["v0.tp"]] for store in stores]
    np.testing.assert_array_equal(np.concatenate([k for k, _ in own], 1), states[0])
    for step in range(3):
        x = rng.standard_normal((1, 1, 48)).astype(np.float32)
        want, *states = interpret(module, [x, np.int64(step), *states], w.store)
        results = interpret_ranks(modules, [[x, np.int64(step), *o] for o in own], stores)
        own = [r[1:] for r in results]
        for y, *_ in results:
            close(y, want)
    close(np.concatenate([k for k, _ in own], 1), states[0])


def test_ranks_decide_alike() -> None:
    """The ops of all ranks are the same, in the same order."""
    w = Weights()
    module = module_of(transformer(w, fused=True), F((2, 5, 48), "f32"))
    modules, _ = sharded(module, "dp:2,tp:2", w.store)
    assert len({tuple(names_of(m)) for m in modules}) == 1
