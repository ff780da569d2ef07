"""Normalisations and softmax of PyTorch programs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch_programs import check, check_traced, evaluated, exported, gradients

from xcc.diagnostics import UserError
from xcc.frontends.torch.capture import capture_fx

aten: Any = torch.ops.aten


@pytest.mark.parametrize("shape, last", [((3, 4, 5), 1), ((2, 3, 4), 2), ((6,), 1)])
def test_layer_norm(shape: tuple[int, ...], last: int) -> None:
    x, normal = torch.randn(shape), shape[-last:]
    weight, bias = torch.randn(normal), torch.randn(normal)
    check_traced(lambda x: aten.native_layer_norm(x, list(normal), weight, bias, 1e-3), x, sizes="fake")
    check_traced(lambda x: aten.native_layer_norm(x, list(normal), None, None, 1e-5), x, sizes="fake")


@pytest.mark.parametrize("groups", [1, 2, 6])
def test_group_norm(groups: int) -> None:
    x, weight, bias = torch.randn(2, 6, 3, 4), torch.randn(6), torch.randn(6)
    check_traced(lambda x: aten.native_group_norm(x, weight, bias, x.shape[0], 6, 12, groups, 1e-4), x)


class Norms(torch.nn.Module):
    """What an export keeps whole."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.LayerNorm(5)
        self.group = torch.nn.GroupNorm(2, 4)
        self.instance = torch.nn.InstanceNorm1d(4, affine=True)
        self.rms = torch.nn.RMSNorm(5, eps=1e-4)
        self.batch = torch.nn.BatchNorm1d(4)
        self.batch.running_mean = torch.randn(4)

    def forward(self, x: Any) -> Any:
        return (self.layer(x), self.group(x), self.instance(x), self.rms(x), aten._fused_rms_norm(x, [5], None, None),
                self.batch(x), x.softmax(-1), x.log_softmax(1), x.softmax(0, dtype=torch.float64))


def test_whole_norms() -> None:
    batch = torch.export.Dim("batch")
    args, options = (torch.randn(3, 4, 5),), {"dynamic_shapes": ({0: batch},)}
    program = check(Norms().eval(), args, (torch.randn(1, 4, 5),), **options)
    ops = {node.op for node in program.graph.nodes}
    assert {"aten.layer_norm.default", "aten.group_norm.default", "aten.rms_norm.default", "aten.softmax.int"} <= ops
    assert "aten.instance_norm.default" not in ops and "aten.view.default" not in ops


@pytest.mark.parametrize("form", ["functional", "no_stats", "inference"])
def test_batch_norm(form: str) -> None:
    x, weight, bias, mean = (torch.randn(s) for s in ((4, 3, 5), 3, 3, 3))
    variance = torch.rand(3) + 0.5

    def f(x: Any, m: Any, v: Any) -> Any:
        if form == "functional":
            return aten._native_batch_norm_legit_functional(x, weight, bias, m, v, True, 0.2, 1e-4)
        if form == "no_stats":
            return aten._native_batch_norm_legit.no_stats(x, weight, None, True, 0.1, 1e-5)
        return aten._native_batch_norm_legit_no_training(x, None, bias, m, v, 0.1, 1e-5)

    check_traced(f, x, mean, variance, sizes="fake")


def test_statistics_written_in_place_are_no_functional_graph() -> None:
    x, mean, variance = torch.randn(4, 3, 5), torch.zeros(3), torch.ones(3)
    module = make_fx(lambda x, m, v: aten.native_batch_norm(x, None, None, m, v, True, 0.1, 0))(x, mean, variance)
    with pytest.raises(UserError, match="native_batch_norm.*running statistics in place"):
        evaluated(capture_fx(module), (x, mean, variance))


def test_running_statistics_are_updates() -> None:
    model = torch.nn.BatchNorm2d(3)
    x = torch.randn(4, 3, 2, 2)
    program = exported(model, (x,))
    mean, variance, calls, out = evaluated(program, (x,))
    expected = model(x)
    torch.testing.assert_close(torch.from_numpy(mean), model.running_mean)
    torch.testing.assert_close(torch.from_numpy(variance), model.running_var)
    torch.testing.assert_close(torch.from_numpy(out), expected, rtol=1e-5, atol=1e-5)
    assert int(calls) == 1


def test_softmax_of_hidden_rows_and_of_one_number() -> None:
    x = torch.full((2, 3), float("-inf"))
    x[0, 1] = 1.0
    check_traced(lambda x: aten._safe_softmax(x, -1), x, sizes="fake")
    check_traced(lambda x: (torch.softmax(x, 0), torch.log_softmax(x, 0)), torch.tensor(2.0))


@pytest.mark.parametrize("dim", [0, 1])
def test_weight_norms(dim: int) -> None:
    v, g = torch.randn(3, 4), torch.randn((3, 1) if dim == 0 else (1, 4))
    check_traced(gradients(lambda v, g: torch._weight_norm(v, g, dim)), v, g, others=((v[:2, :3], g[:2, :3]),))
