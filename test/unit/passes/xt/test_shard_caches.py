"""Keys and values that a model holds, or is given and gives back, lie on the ranks that use them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernel_cases import module_of
from shard_models import F, Weights, counts, linear
from sharded import close, names_of, sharded

from xcc._mlir import ir
from xcc.dialects import xt
from xcc.dialects.xt.interpret import interpret
from xcc.dialects.xt.interpret_ranks import interpret_ranks
from xcc.passes.xt.sharding.cost import costs_of
from xcc.passes.xt.sharding.sites import Sites
from xcc.runtime.mesh import Mesh
from xcc.symbolic import sym
from xcc.targets.nvptx.chip import chips

SLOW = "sm_90a"


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


@pytest.mark.parametrize("returned", [False, True])
def test_keys_that_attention_alone_reads_are_not_put_together(returned: bool) -> None:
    def build(q: Any, past: Any, new: Any) -> Any:
        keys = xt.concatenate(past, new, axis=2)
        y = xt.attention(q, keys, keys)
        return (y, keys) if returned else y

    one = F((1, 4, 1, 16), "f32")
    module = module_of(build, one, F((1, 4, 999, 16), "f32"), one)
    mesh = Mesh.parse("tp:2")
    with module.context:
        sites = Sites(module.body.operations[0].regions[0].blocks[0], 2)
        seconds = sites.all[0].seconds(costs_of(chips()[SLOW], mesh, ("tp",), {}))
    assert (seconds > 0) == returned
