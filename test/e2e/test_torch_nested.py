"""What exported programs are given, return and hold: nested values, tied weights, constants, buffers of all kinds; and
nested tensors."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import xcc.torch
from xcc.frontends.torch.program import captured


@dataclass
class Pair:
    x: Any
    y: Any


torch.export.register_dataclass(Pair, serialized_type_name="test_torch_nested.Pair")
Masks = namedtuple("Masks", ["mask", "score"])
torch.utils._pytree._register_namedtuple(Masks, serialized_type_name="test_torch_nested.Masks")
ONES = torch.ones(2)


class Nested(torch.nn.Module):
    def forward(self, pair: Any, given: Any, scale: Any = None) -> Any:
        return {"sum": pair.x + pair.y, "rest": (given["a"] * 2, None, [given["b"], 3]), "pair": Pair(pair.x, pair.y)}


class Returned(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return x + 1, {"again": x}, Masks(x * 2, x * 3)


def test_names_are_the_ways_through_dicts_lists_and_dataclasses(tmp_path: Path) -> None:
    program = torch.export.export(Nested(), (Pair(ONES, ONES * 3), {"a": ONES * 4, "b": ONES * 5}))
    torch.export.save(program, tmp_path / "m.pt2")
    model = xcc.compile(tmp_path / "m.pt2")
    assert [i.name for i in model.inputs] == ["pair_x", "pair_y", "given_a", "given_b"]
    out = model.run({"pair_x": ONES, "pair_y": ONES * 3, "given_a": ONES * 4, "given_b": ONES * 5})
    assert {name: value.tolist() for name, value in out.items()} == {
        "sum": [4, 4], "rest_0": [8, 8], "rest_2_0": [5, 5], "rest_2_1": 3, "pair_x_1": [1, 1], "pair_y_1": [3, 3]}


def test_results_in_a_tuple_have_numbers() -> None:
    model = xcc.compile(torch.export.export(Returned(), (ONES,)))
    assert [o.name for o in model.outputs] == ["out0", "out1_again", "out2_mask", "out2_score"]


class Holding(torch.nn.Module):
    """Two layers of one weight, a constant, a buffer that a state_dict has and one that it has not."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = (torch.nn.Linear(32, 32, bias=False) for _ in range(2))
        self.second.weight = self.first.weight
        self.table = torch.arange(32.0)
        self.register_buffer("kept", torch.ones(32))
        self.register_buffer("passing", torch.full((32,), 2.0), persistent=False)
        self.register_buffer("count", torch.zeros(()), persistent=False)

    def forward(self, x: Any) -> Any:
        self.count += 1
        return self.second(self.first(x) + self.table) + self.kept + self.passing + torch.tensor([3.0]) * self.count


def test_what_a_model_holds(tmp_path: Path) -> None:
    torch.manual_seed(0)
    torch.export.save(torch.export.export(Holding(), (torch.ones(3, 32),)), tmp_path / "m.pt2")
    program = captured(str(tmp_path / "m.pt2"))
    store, names = program.store()
    assert names["first.weight"] == names.get("second.weight", names["first.weight"])
    assert sum(store[name].nbytes == 32 * 32 * 4 for name in store) == 1
    xcc.compile(tmp_path / "m.pt2").save(tmp_path / "m.xcm")
    model = xcc.load(tmp_path / "m.xcm")
    assert sum(w.nbytes >= 32 * 32 * 4 for w in model.artifact.weights.values()) == 1
    torch.manual_seed(0)
    module, x = Holding(), torch.randn(3, 32)
    for _ in range(2):
        np.testing.assert_allclose(model(x.numpy()), module(x).detach().numpy(), rtol=1e-4, atol=1e-4)
    assert list(model.state) == ["count"] and model.state["count"] == 2
    model.reset()
    assert model.state["count"] == 0


def test_nested_tensors(fresh_torch: None) -> None:
    """Other lengths, and other numbers of them, are no other graph; forward and backward."""
    def f(x: Any, w: Any) -> Any:
        return torch.nn.functional.silu(x @ w) + x

    compiled = xcc.torch.compile(f, strict=True, versions=0)
    for lengths in ((3, 5), (2, 6, 4), (1, 1)):
        rows = [torch.randn(n, 4) for n in lengths]
        x = torch.nested.nested_tensor(rows, layout=torch.jagged, requires_grad=True)
        w = torch.randn(4, 4)
        made, want = (g(x, w).values() for g in (compiled, f))
        torch.testing.assert_close(made, want, rtol=1e-4, atol=1e-5)
        slopes = [torch.autograd.grad(r.sin().sum(), x)[0].values() for r in (made, want)]
        torch.testing.assert_close(*slopes, rtol=1e-4, atol=1e-5)
