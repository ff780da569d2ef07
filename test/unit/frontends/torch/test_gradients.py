"""Gradients of PyTorch programs, as autograd makes ATen ops of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from test_windows import draw_convolution, draw_pool
from torch_programs import check_traced, compare, evaluated, gradients, traced

from xcc._mlir import ir
from xcc.context import shared_context
from xcc.frontends.torch.cumprod import declare_cumprod
from xcc.frontends.torch.importer import load
from xcc.frontends.torch.layers import whole_layers

aten: Any = torch.ops.aten


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("transposed", [False, True])
def test_convolutions(seed: int, transposed: bool) -> None:
    n, x, weight, bias, options = draw_convolution(np.random.default_rng(seed), transposed)
    f = getattr(F, f"conv_transpose{n}d" if transposed else f"conv{n}d")
    tensors = [t for t in (x, weight, bias) if t is not None]
    check_traced(gradients(lambda *t: f(*t, **options)), *tensors, tolerance=1e-4,
                 sizes="fake" if seed else "symbolic")


@pytest.mark.parametrize("strides", [(1, 1), (2, 3)])
def test_a_filter_of_one_pixel_is_a_matrix(strides: tuple[int, int]) -> None:
    """Its gradient is a product of pixels, without a convolution."""
    f = gradients(lambda x, w: F.conv2d(x, w, stride=strides))
    x, w = torch.randn(2, 6, 7, 8), torch.randn(5, 6, 1, 1)
    check_traced(f, x, w, tolerance=1e-4, sizes="symbolic")
    with shared_context(), ir.Location.unknown():
        text = str(load(traced(f, (x, w)))[0])
    assert text.count('"xt.dot_general"') == 1 and text.count('"xt.convolution"') <= 2      # forward, and input's


@pytest.mark.parametrize("seed", range(6))
def test_pools(seed: int) -> None:
    n, x, options = draw_pool(np.random.default_rng(seed))
    sizes = "fake" if seed else "symbolic"
    check_traced(gradients(lambda x: getattr(F, f"max_pool{n}d")(x, **options)), x, sizes=sizes)
    options["count_include_pad"] = seed % 2 == 0
    check_traced(gradients(lambda x: getattr(F, f"avg_pool{n}d")(x, **options)), x, sizes=sizes)


@pytest.mark.parametrize("size, out", [((6, 9), (2, 3)), ((7, 5), (3, 4)), ((2, 4), (5, 1))])
def test_adaptive_pools(size: tuple[int, int], out: tuple[int, int]) -> None:
    x = torch.randn(8, 3, *size)
    check_traced(gradients(lambda x: F.adaptive_avg_pool2d(x, out)), x, others=((torch.randn(7, 2, 10, 11),),))
    check_traced(gradients(lambda x: F.adaptive_max_pool2d(x, out)), x, sizes="fake")


@pytest.mark.parametrize("shape, kernel, out", [((2, 3, 9, 8), (3, 2), (4, 1)), ((3, 7, 8), 2, 3),
                                                ((2, 3, 6, 7, 6), (2, 3, 2), (3, 2, 4))])
def test_pools_at_random_places(shape: tuple[int, ...], kernel: Any, out: Any) -> None:
    n = 3 if len(shape) == 5 else 2
    places = torch.rand(shape[0] if len(shape) == n + 2 else 1, shape[-n - 1], n)
    pool = getattr(aten, f"fractional_max_pool{n}d")
    full = [(v,) * n if isinstance(v, int) else v for v in (kernel, out)]
    check_traced(lambda x, at: pool(x, *full, at), torch.randn(shape), places)
    check_traced(gradients(lambda x: pool(x, *full, places)), torch.randn(shape), sizes="fake")


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "linear", "bilinear", "trilinear", "bicubic"])
def test_resizing(mode: str) -> None:
    n = {"linear": 1, "trilinear": 3}.get(mode, 2)
    x = torch.randn(2, 3, *(5, 6, 4)[:n])
    for factor in (2.0, 0.6, 1.7):
        check_traced(gradients(lambda x, f=factor: F.interpolate(x, scale_factor=f, mode=mode)), x, sizes="fake")
    check_traced(gradients(lambda x: F.interpolate(x, size=(7, 4, 4)[:n], mode=mode)), x, sizes="fake")
    if mode == "linear":
        check_traced(gradients(lambda x: F.interpolate(x, scale_factor=2.0, mode=mode, align_corners=True)), x)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_reads_at_positions(mode: str, padding: str) -> None:
    x, grid = torch.randn(2, 3, 4, 5), torch.rand(2, 3, 2, 2) * 3 - 1.5
    for align in (False, True):
        check_traced(gradients(lambda x, g, a=align: F.grid_sample(x, g, mode, padding, a)), x, grid, sizes="fake",
                     tolerance=1e-4)
    if mode != "bicubic":
        volume, places = torch.randn(1, 2, 3, 4, 5), torch.rand(1, 2, 3, 2, 3) * 3 - 1.5
        check_traced(gradients(lambda x, g: F.grid_sample(x, g, mode, padding, False)), volume, places, sizes="fake",
                     tolerance=1e-4)


LAYERS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "layer norm": (lambda x, w, b: F.layer_norm(x, (4, 5), w, b), ((3, 4, 5), (4, 5), (4, 5))),
    "group norm": (lambda x, w, b: F.group_norm(x, 2, w, b), ((3, 4, 5), (4,), (4,))),
    "batch norm": (lambda x, w, b: F.batch_norm(x, None, None, w, b, True), ((3, 4, 5), (4,), (4,))),
    "running": (lambda x, w, b: F.batch_norm(x, torch.ones(4), torch.ones(4), w, b), ((3, 4, 5), (4,), (4,))),
    "instance norm": (lambda x, w: F.instance_norm(x, weight=w), ((3, 4, 5), (4,))),
    "softmax": (lambda x: (F.softmax(x, 1), F.log_softmax(x, 0)), ((3, 4, 5),)),
    "gelu": (lambda x: (F.gelu(x), F.gelu(x, approximate="tanh"), F.silu(x)), ((3, 4),)),
    "tanh": (lambda x: (torch.tanh(x), torch.sigmoid(x), F.threshold(x, 0.1, 2.0), F.elu(x)), ((3, 4),)),
    "shrink": (lambda x: (F.hardshrink(x), F.softshrink(x), F.hardtanh(x), F.mish(x)), ((3, 4),)),
    "pads": (lambda x: (F.pad(x, (2, 1, 0, 3), "replicate"), F.pad(x, (1, 2, 1, 0), "reflect")), ((2, 3, 4, 5),)),
    "products": (lambda x, w, b: (F.linear(x, w, b), torch.einsum("abc, dc -> bad", x, w)), ((2, 3, 4), (5, 4), (5,))),
    "bilinear": (F.bilinear, ((3, 2, 4), (3, 2, 5), (6, 4, 5), (6,))),
    "mse": (lambda x, y: (F.mse_loss(x, y), F.huber_loss(x, y), F.smooth_l1_loss(x, y)), ((3, 4), (3, 4))),
    "columns": (lambda x: F.unfold(x, (2, 3), padding=1), ((2, 3, 4, 5),)),
    "glu": (lambda x: (F.glu(x), F.softplus(x), F.logsigmoid(x), F.leaky_relu(x), F.hardswish(x)), ((3, 4),)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name: str) -> None:
    f, shapes = LAYERS[name]
    check_traced(gradients(f), *(torch.randn(s) for s in shapes), sizes="fake", tolerance=1e-4)
    if name == "bilinear":
        check_traced(f, *(torch.randn(s) for s in shapes), tolerance=1e-4)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embeddings(mode: str) -> None:
    weight, indices, offsets = torch.randn(9, 4), torch.tensor([1, 2, 2, 7, 0, 3, 2]), torch.tensor([0, 2, 2, 6])
    factors = torch.rand(7)
    check_traced(gradients(lambda w, i: F.embedding(i, w, padding_idx=2)), weight, indices)
    check_traced(gradients(lambda w, i, o: F.embedding_bag(i, w, o, mode=mode, padding_idx=2)), weight, indices,
                 offsets, sizes="fake")
    if mode == "sum":
        check_traced(gradients(lambda w, i, o, p: F.embedding_bag(i, w, o, mode=mode, per_sample_weights=p)), weight,
                     indices, offsets, factors, sizes="fake")


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, float("inf")])
def test_distances(p: float) -> None:
    x, y = torch.randn(2, 4, 3), torch.randn(2, 5, 3)
    y[0, 1] = x[0, 2]
    check_traced(gradients(lambda x, y: torch.cdist(x, y, p)), x, y, sizes="fake", tolerance=1e-4)
    check_traced(gradients(lambda x, y: torch.cdist(x, y, p)), x[0], y[:0], sizes="fake")
    check_traced(gradients(lambda x: torch.pdist(x, p)), x[0], sizes="fake", tolerance=1e-4)
    check_traced(lambda x, y: torch.dist(x, y, p), x, y[:, :4])


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_cross_entropy(reduction: str) -> None:
    target = torch.tensor([1, 4, 0, 2, 1, 3])
    check_traced(gradients(lambda x, t: F.cross_entropy(x, t, ignore_index=0, reduction=reduction)),
                 torch.randn(6, 5), target)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_margins(reduction: str) -> None:
    x, target = torch.randn(4, 5), torch.tensor([1, 4, 0, 2])
    for p, weight in ((1, None), (2, torch.rand(5))):
        f = gradients(lambda x, t, p=p, w=weight: F.multi_margin_loss(x, t, p, 0.7, w, reduction=reduction))
        check_traced(f, x, target)
        check_traced(f, x[0], target[:1], sizes="fake")
    labels = torch.tensor([[1, 2, -1, 0, 0], [-1, 0, 1, 2, 3], [4, 3, 2, 1, 0], [0, 0, 3, -1, 2]])
    kind = ["none", "mean", "sum"].index(reduction)
    is_target = aten.multilabel_margin_loss_forward(x, labels, kind)[1]
    check_traced(lambda g, x, t, own: aten.multilabel_margin_loss_backward(g, x, t, kind, own),
                 torch.rand(4) if reduction == "none" else torch.rand(()), x, labels, is_target, sizes="fake")


@pytest.mark.parametrize("masked, causal", [(False, False), (False, True), (True, False)])
def test_attention(masked: bool, causal: bool) -> None:
    q, k, v = torch.randn(2, 3, 5, 8), torch.randn(2, 3, 7, 8), torch.randn(2, 3, 7, 8)
    mask = torch.ones(5, 7, dtype=torch.bool)
    mask[1:3, 4:] = False
    f = gradients(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, mask if masked else None, is_causal=causal))
    check_traced(f, q, k, v)
    ops = {node.op for node in traced(f, (q, k, v), "fake").graph.nodes}
    assert "aten._scaled_dot_product_flash_attention_for_cpu_backward.default" in ops


def flash(g: Any, q: Any, k: Any, v: Any, p: float = 0.0) -> Any:
    o = aten._scaled_dot_product_flash_attention(q, k, v, p, True, scale=0.3)
    return o[0], *aten._scaled_dot_product_flash_attention_backward(g, q, k, v, *o[:6], p, True, *o[6:8], scale=0.3)


def efficient(g: Any, q: Any, k: Any, v: Any, p: float = 0.0) -> Any:
    o = aten._scaled_dot_product_efficient_attention(q, k, v, None, True, p, True, scale=0.3)
    return o[0], *aten._scaled_dot_product_efficient_attention_backward(
        g, q, k, v, None, *o, p, [True, True, True, False], True, scale=0.3)[:3]


def cudnn(g: Any, q: Any, k: Any, v: Any, p: float = 0.0) -> Any:
    o = aten._scaled_dot_product_cudnn_attention(q, k, v, None, True, p, True, scale=0.3)
    return o[0], *aten._scaled_dot_product_cudnn_attention_backward(
        g, q, k, v, *o[:2], *o[6:8], None, *o[2:6], p, True, scale=0.3)


@pytest.mark.parametrize("kernel", [flash, efficient, cudnn])
@pytest.mark.parametrize("sizes", ["fake", "symbolic"])
def test_attention_of_gpus(kernel: Any, sizes: str) -> None:
    """Ops that torch has for GPUs alone: traced, and compared with autograd of the whole op."""
    grad, *args = (torch.randn(2, 3, 5, 8) for _ in range(4))
    leaves = [t.requires_grad_() for t in args]
    out = F.scaled_dot_product_attention(*leaves, is_causal=True, scale=0.3)
    expected = [out.detach(), *torch.autograd.grad(out, leaves, grad)]
    given = (grad, *(t.detach() for t in args))
    compare(evaluated(traced(kernel, given, sizes), given), [t.numpy() for t in expected], 1e-5)


def test_a_bias_of_attention_has_a_gradient() -> None:
    grad, q, k, v = (torch.randn(2, 3, 5, 8) for _ in range(4))
    bias = torch.randn(1, 3, 5, 5)

    def f(g: Any, q: Any, k: Any, v: Any, b: Any) -> Any:
        o = aten._scaled_dot_product_efficient_attention(q, k, v, b.expand(2, 3, 5, 5), True, 0.0, False)
        return aten._scaled_dot_product_efficient_attention_backward(
            g, q, k, v, b.expand(2, 3, 5, 5), *o, 0.0, [True] * 4, False)

    given = (grad, q, k, v, bias)
    leaves = [t.detach().requires_grad_() for t in (q, k, v, bias.expand(2, 3, 5, 5))]
    out = F.scaled_dot_product_attention(*leaves)
    expected = torch.autograd.grad(out, leaves, grad)
    compare(evaluated(traced(f, given, "fake"), given), [t.numpy() for t in expected], 1e-5)


def test_running_products() -> None:
    """One trace for all sizes; rows may have no zero, one, or several."""
    declare_cumprod()
    x = torch.tensor([[2.0, -3.0, 0.5, 1.5], [2.0, 0.0, 3.0, 4.0], [0.0, 2.0, 0.0, 5.0]])
    with whole_layers():
        check_traced(gradients(lambda x: (x.cumprod(1), x.cumprod(-2, dtype=torch.float64))), x,
                     others=((x[:2, :3],), (x[:, :1],), (x[:, :0],)))


def test_zeros_as_tangents_have_them() -> None:
    zeros = aten._new_zeros_with_same_feature_meta
    check_traced(lambda x, y: zeros(x, y, self_num_batch_dims=1) + x[:, :1], torch.randn(3, 4), torch.randn(4))
