"""``torch.compile(model, backend="xcc")``: equal to eager, forward and backward, views and layouts included."""

from __future__ import annotations

import math
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._dynamo.utils import counters
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import xcc.torch
from xcc.diagnostics import UserError
from xcc.frontends.torch.backend import backend

pytestmark = pytest.mark.usefixtures("fresh_torch")

STRICT = {"strict": True}


def perceptron() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.Linear(128, 10))


def equal(f: Any, *args: Any, **options: Any) -> Any:
    """Compiled `f` gives what eager gives, with the same strides; returns the compiled function."""
    compiled = torch.compile(f, backend=backend, fullgraph=True, options=STRICT, **options)
    want, got = f(*args), compiled(*args)
    torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)
    if isinstance(want, torch.Tensor):
        assert got.stride() == want.stride()
    return compiled


def test_all_sizes_run_from_one_compilation() -> None:
    model = perceptron()
    compiled = xcc.torch.compile(model, strict=True)
    counters.clear()
    with torch.no_grad():
        for n in (1, 0, 5, 2, 9):
            x = torch.randn(n, 64)
            torch.testing.assert_close(compiled(x), model(x), rtol=1e-5, atol=1e-5)
    assert counters["stats"]["unique_graphs"] == 1


def test_sizes_and_parameters_take_turns() -> None:
    """Calls that repeat one before, between others: of other sizes, strided, with parameters elsewhere and back."""
    model = perceptron()
    compiled = xcc.torch.compile(model, strict=True)
    first = [p.data for p in model.parameters()]
    others = [torch.randn_like(p) / 16 for p in first]
    with torch.no_grad():
        for data in (first, others, first, others):
            for p, values in zip(model.parameters(), data, strict=True):
                p.data = values
            for n in (3, 5, 3, 3, 5):
                for x in (torch.randn(n, 64), torch.randn(n, 64), torch.randn(64, n).t()):
                    torch.testing.assert_close(compiled(x), model(x), rtol=1e-5, atol=1e-5)


def test_layouts_are_read_and_promised() -> None:
    x = torch.randn(2, 3, 4, 5)
    last = x.to(memory_format=torch.channels_last)
    for layout in (x, last, x.transpose(1, 3), x[:, :, ::2], x[:1].expand(2, 3, 4, 5)):
        equal(lambda t: torch.nn.functional.gelu(t) * 2, layout)


def test_views_and_returned_inputs() -> None:
    x = torch.randn(4, 6)
    compiled = equal(lambda t: (t, t.T, t + 1, t[1]), x)
    out = compiled(x)
    assert out[0] is x and out[1].data_ptr() == x.data_ptr() and out[3]._base is x


def test_an_input_that_is_written() -> None:
    def step(x: Any, y: Any) -> Any:
        x.add_(y)
        return x * 2

    a, b = torch.ones(3), torch.ones(3)
    compiled = torch.compile(step, backend=backend, fullgraph=True, options=STRICT)
    y = torch.randn(3)
    with torch.no_grad():
        torch.testing.assert_close(compiled(a, y), step(b, y))
        torch.testing.assert_close(a, b)
        torch.testing.assert_close(compiled(a, a), step(b, b))
        torch.testing.assert_close(a, b)
        wide, same = torch.zeros(3, 2), torch.zeros(3, 2)       # with gaps in memory
        torch.testing.assert_close(compiled(wide[:, 0], y), step(same[:, 0], y))
        torch.testing.assert_close(wide, same)


@pytest.mark.parametrize("compile", [lambda f: torch.compile(f, backend=backend), xcc.torch.compile],
                         ids=["known", "free"])
def test_gradients(compile: Any) -> None:
    """Of the same graph twice."""
    model = perceptron()
    x = torch.randn(5, 64)
    grads = []
    for f in (compile(model), model):
        model.zero_grad()
        loss = f(x).square().mean()
        loss.backward(retain_graph=True)
        loss.backward()
        grads.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
    torch.testing.assert_close(grads[0], grads[1], rtol=1e-4, atol=1e-6)


def unsupported(x: Any) -> Any:
    return torch.linalg.eigvalsh(x @ x.T + 1).sin() * 2


def test_an_op_without_converter_runs_in_torch_with_one_warning() -> None:
    x = torch.randn(4, 4)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        got = torch.compile(unsupported, backend=backend)(x)
    torch.testing.assert_close(got, unsupported(x), rtol=1e-5, atol=1e-5)
    said = [str(w.message) for w in caught if "xcc" in str(w.message)]
    assert len(said) == 1 and "test_torch_compile.py:" in said[0] and "aten._linalg_eigh.default" in said[0]


def test_a_number_that_is_computed_of_sizes_is_given_to_both_parts() -> None:
    """``full`` keeps it a number; most ops take it as a tensor."""
    def f(x: Any) -> Any:
        part = 1 / math.sqrt(x.shape[0])
        y = torch.full((x.shape[0], x.shape[0]), part) @ x
        return torch.linalg.eigvalsh(y @ y.T + torch.eye(x.shape[0])) + torch.full((x.shape[0],), part)

    def whole(x: Any) -> Any:
        return torch.full(x.shape, 1 / math.sqrt(x.shape[0])) * x

    compiled, strict = xcc.torch.compile(f), xcc.torch.compile(whole, strict=True)
    for n in (4, 6):
        x = torch.randn(n, 3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.testing.assert_close(compiled(x), f(x), rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(strict(x), whole(x))


def test_strict_makes_it_an_error() -> None:
    with pytest.raises(Exception, match=r"test_torch_compile.py:\d+.*aten._linalg_eigh.default.*no converter"):
        torch.compile(unsupported, backend=backend, options=STRICT)(torch.randn(4, 4))


def test_unknown_options_are_refused() -> None:
    with pytest.raises(UserError, match="no option 'fast'; options are"):
        xcc.torch.compile(perceptron(), fast=True)


SECOND = """
import sys, torch
from xcc.frontends.torch.backend import backend
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.Linear(128, 10))
with torch.no_grad():
    print(float(torch.compile(model, backend=backend)(torch.ones(3, 64)).sum()))
print("mlir" if any("torch_mlir" in name for name in sys.modules) else "none")
"""


def test_the_second_process_compiles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XCC_CACHE_DIR", str(tmp_path))
    first, second = (subprocess.run([sys.executable, "-c", SECOND], check=True, capture_output=True, text=True)
                     for _ in range(2))
    assert first.stdout == second.stdout and second.stdout.split()[1] == "none"
    assert len(list(tmp_path.glob("models/*/*.xcm"))) == 1


def test_dropout_draws_anew_and_repeats_with_the_seed() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.Dropout(0.25))
    compiled = xcc.torch.compile(model, strict=True)
    x = torch.randn(16, 32)
    torch.manual_seed(3)
    first, second = compiled(x), compiled(x)
    torch.manual_seed(3)
    assert torch.equal(compiled(x), first) and not torch.equal(first, second)
    left = first != 0
    assert 0.65 < left.float().mean() < 0.85
    torch.testing.assert_close(first[left], (model[0](x) / 0.75)[left], rtol=1e-5, atol=1e-5)


def test_tensors_that_are_not_on_the_cpu_stay_in_torch() -> None:
    x = torch.ones(3, device="meta")
    with pytest.warns(UserWarning, match="tensors on meta"):
        assert torch.compile(lambda t: t + 1, backend=backend)(x).device.type == "meta"
    torch._dynamo.reset()
    with pytest.raises(Exception, match="tensors on meta"):
        torch.compile(lambda t: t + 1, backend=backend, options=STRICT)(x)


def test_recurrent_layers_train_at_any_length() -> None:
    model = torch.nn.LSTM(4, 4)
    compiled = xcc.torch.compile(model, strict=True)
    torch._dynamo.utils.counters.clear()
    for n in (3, 7, 1):
        x = torch.randn(n, 2, 4)
        found = []
        for f in (model, compiled):
            model.zero_grad()
            f(x)[0].sin().sum().backward()
            found.append([p.grad for p in model.parameters()])
        torch.testing.assert_close(found[1], found[0], rtol=1e-4, atol=1e-5)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1


def test_a_size_that_squeeze_drops_is_compiled_apart() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return x.squeeze() * 2

    cases = [(f, ((5, 3), (0, 3), (1, 3), (3, 3), (1, 1)), 3),
             (lambda x: x.squeeze(1) * 2, ((3, 1, 5), (1, 1, 2), (3, 2, 5)), 2),
             (lambda x: x[:, :1].squeeze(1) * 2, ((4, 3), (2, 5), (4, 0)), 2)]      # as distributions pick an element
    for function, shapes, graphs in cases:
        torch._dynamo.utils.counters.clear()
        compiled = xcc.torch.compile(function, strict=True)
        for shape in shapes:
            x = torch.randn(shape, requires_grad=True)
            made, want = compiled(x), function(x)
            torch.testing.assert_close(made, want)
            torch.testing.assert_close(*(torch.autograd.grad(r.sum(), x) for r in (made, want)))
        assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == graphs
    apart = torch.compile(f, backend=backend, options=STRICT)
    for n in (5, 1, 3):
        x = torch.randn(n, 3)
        torch.testing.assert_close(apart(x), f(x))


def test_gradients_of_elements_that_a_run_counts() -> None:
    """The forward keeps their number for the backward: torch has it as a size, which no input tells."""
    def f(x: Any) -> Any:
        return x[x > 0].square().sum() * 2

    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        compiled = xcc.torch.compile(f, strict=True)
        for shape in ((4, 6), (5, 3)):
            x = torch.randn(shape, requires_grad=True)
            torch.testing.assert_close(*(torch.autograd.grad(g(x), x) for g in (compiled, f)))
    assert counters["stats"]["unique_graphs"] == 1


def test_attention_of_own_scores_and_masks() -> None:
    """``flex_attention``: biases by heads, as ALiBi has them, a causal mask, and heads of a group."""
    n, slopes = 12, torch.tensor([0.5, 0.25])
    seen = create_block_mask(lambda b, h, i, j: i >= j, None, None, n, n, device="cpu")

    def f(q: Any, k: Any, v: Any) -> Any:
        return flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s + slopes[h] * (j - i), block_mask=seen,
                              enable_gqa=True)

    bias = slopes[:, None, None] * (torch.arange(n) - torch.arange(n)[:, None])
    bias = bias.masked_fill(torch.ones(n, n).triu(1) > 0, -math.inf)
    compiled = xcc.torch.compile(f, strict=True)
    for batch in (3, 5):
        q, k, v = (torch.randn(batch, heads, n, 8) for heads in (2, 1, 1))
        want = torch.nn.functional.scaled_dot_product_attention(q, k, v, bias.expand(batch, 2, n, n), enable_gqa=True)
        torch.testing.assert_close(compiled(q, k, v), want, rtol=1e-5, atol=1e-5)
    assert counters["stats"]["unique_graphs"] == 1


def test_products_of_bytes_and_bits_of_other_types() -> None:
    """As quantised layers have them."""
    def f(x: Any, a: Any, b: Any, rows: Any, columns: Any) -> Any:
        eights = [t.to(torch.float8_e4m3fn) for t in (x, a.float() / 16)]
        scaled = torch._scaled_mm(eights[0], eights[1].t(), rows, columns, out_dtype=torch.bfloat16)
        return scaled, torch._int_mm(a, b), x.view(torch.int32) >> 23, x.view(torch.uint8), a.view(torch.int16)

    for m in (32, 48):
        a = torch.randint(-99, 99, (16, 64), dtype=torch.int8)
        b, rows, columns = torch.randint(-99, 99, (64, 24), dtype=torch.int8), torch.rand(m, 1), torch.rand(1, 16)
        given = torch.randn(m, 64), a, b, rows, columns
        compiled = xcc.torch.compile(f, strict=True)
        torch.testing.assert_close(compiled(*given), f(*given), rtol=1e-2, atol=1e-2)
    assert counters["stats"]["unique_graphs"] == 1


@pytest.mark.parametrize("kind", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_floats_as_bytes(kind: torch.dtype) -> None:
    """The lowest bits of their integers, below 0, too."""
    x = torch.linspace(-300, 300, 67).to(kind)
    assert torch.equal(xcc.torch.compile(lambda x: x.to(torch.uint8), strict=True)(x), x.to(torch.uint8))


def test_complex_numbers_between_parts() -> None:
    """Given, kept for the gradient, and returned: torch has but views of them."""
    def turned(x: Any, factors: Any) -> Any:
        return torch.view_as_complex(x.unflatten(-1, (-1, 2))) * factors * 2j

    compiled = xcc.torch.compile(turned, strict=True)
    for n in (3, 5):
        given = [torch.randn(n, 8, requires_grad=True), torch.randn(4, dtype=torch.complex64).conj()]
        made, want = compiled(*given), turned(*given)
        torch.testing.assert_close(made, want)
        torch.testing.assert_close(*(torch.autograd.grad(r.abs().sum(), given[0]) for r in (made, want)))
