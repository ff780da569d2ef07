"""Language models decode token by token with a static cache: as eager does, writing the new rows of the cache only."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch_decode
from torch._dynamo.utils import counters

from xcc.compiler import compile_model
from xcc.context import parse_module
from xcc.dialects import xt
from xcc.frontends.torch.backend import backend
from xcc.frontends.torch.program import captured
from xcc.options import CompileOptions
from xcc.passes.xt.fusion.kernel_summary import summarise

pytestmark = pytest.mark.usefixtures("fresh_torch")

STRICT = {"strict": True}


def test_generate_with_a_static_cache() -> None:
    """With experts, whose rows are sorted."""
    assert torch_decode.generated("mixtral", tokens=8, layers=1)


def test_generate_draws_and_searches() -> None:
    """With groups of heads: draws and beams compile nothing anew, nor do other numbers of rows."""
    draws = {"do_sample": True, "top_k": 20, "top_p": 0.9, "temperature": 0.7, "repetition_penalty": 1.3}
    assert torch_decode.generated("qwen3", 6, 1, [draws, {"num_beams": 3}])
    assert counters["stats"]["unique_graphs"] == 2


def test_an_exported_step_has_the_cache_as_state() -> None:
    """The transformers library holds each tensor of its cache twice, as a buffer and in an object."""
    assert torch_decode.steps_agree("gpt2", tokens=6, layers=1)


def test_a_step_writes_the_new_rows_alone() -> None:
    options = CompileOptions.make("cpu", chip="znver4,cores=2")
    text = compile_model(captured(torch_decode.program_of("llama", layers=1, length=64)), options, stop="kernels").text
    kernels = summarise(parse_module(text, xt.context(), "step")).kernels
    row = 2 * 2 * 16 * 4        # of both heads of both prompts, in f32
    assert [(k.dispatches, k.bytes_out) for k in kernels if "scatter_elements" in k.ops] == [(2, row)]
    assert all(k.bytes_out < 64 * row for k in kernels)


def test_histograms() -> None:
    def counted(x: Any) -> Any:
        return torch.histc(x, 4, 0, 3), torch.histc(x, 3), torch.histc(x, 5, -1, 0.5)

    compiled = torch.compile(counted, backend=backend, options=STRICT)
    for x in (torch.randn(7, 3) * 2, torch.zeros(7, 3)):
        torch.testing.assert_close(compiled(x), counted(x))


def test_rows_of_experts() -> None:
    """Some experts have no rows, and some rows no expert."""
    pytest.importorskip("transformers.integrations.moe")
    product = torch.ops.transformers.grouped_mm_fallback
    compiled = torch.compile(lambda *a: product(*a) + 1, backend=backend, options=STRICT)
    x, weight = torch.randn(5, 4, requires_grad=True), torch.randn(3, 4, 6, requires_grad=True)
    for ends in ([2, 2, 5], [0, 0, 0], [5, 5, 5], [1, 2, 4]):
        given = x, weight, torch.tensor(ends, dtype=torch.int32)
        out, want = compiled(*given), product(*given) + 1
        torch.testing.assert_close(out, want, rtol=1e-5, atol=1e-5)
        slopes = [torch.autograd.grad(y.square().sum(), (x, weight)) for y in (out, want)]
        torch.testing.assert_close(*slopes, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dims", ["23", "33", "32", "22"])
def test_products_of_groups(dims: str) -> None:
    """What is cut into groups of 8, 0, 16 and 8: rows, nothing, columns, what is summed."""
    shapes = {"23": ((32, 16), (4, 16, 8)), "33": ((4, 8, 16), (4, 16, 8)), "32": ((4, 8, 16), (16, 32)),
              "22": ((8, 32), (32, 16))}[dims]
    x, y = (torch.randn(s).to(torch.bfloat16) for s in shapes)
    offs = None if dims == "33" else torch.tensor([8, 8, 24, 32], dtype=torch.int32)
    want = torch._grouped_mm(x, y, offs)
    got = torch.compile(torch._grouped_mm, backend=backend, options=STRICT)(x, y, offs)
    torch.testing.assert_close(got.float(), want.float(), rtol=2e-2, atol=2e-2)


def index_copied(cache: Any, row: Any, at: Any) -> Any:
    cache.index_copy_(2, at, row)
    return cache.sum(-1)


def assigned(cache: Any, row: Any, at: Any) -> Any:
    cache[:, :, at] = row
    return cache.sum(-1)


def added(cache: Any, row: Any, at: Any) -> Any:
    cache.index_put_((torch.arange(2)[:, None], at[None]), row[:, 0, :, None].expand(2, -1, 16, 4), accumulate=True)
    return cache.sum(-1)


@pytest.mark.parametrize("step", [index_copied, assigned, added])
def test_a_cache_is_written_where_it_lies(step: Any) -> None:
    compiled = torch.compile(step, backend=backend, fullgraph=True, options=STRICT)
    a, b = torch.zeros(2, 3, 16, 4), torch.zeros(2, 3, 16, 4)
    with torch.no_grad():
        for n in range(3):
            row = torch.randn(2, 3, 1, 4)
            torch.testing.assert_close(compiled(a, row, torch.tensor([n])), step(b, row, torch.tensor([n])))
        torch.testing.assert_close(a, b)
