"""Exported programs as plain data, and what they mean."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from typing import Any

import pytest
import torch
from torch.export import Dim
from torch.fx.experimental.proxy_tensor import make_fx
from torch_programs import check, compare, evaluated, exported

from xcc.diagnostics import UserError
from xcc.frontends.torch.capture import capture_fx
from xcc.frontends.torch.compat import rounded_products
from xcc.frontends.torch.graph import Input, SizeSpec, TensorSpec, TorchGraph
from xcc.frontends.torch.importer import load
from xcc.frontends.torch.promotion import result_type


class Small(torch.nn.Module):
    """Sizes in shapes and in numbers, nested inputs and outputs, a buffer that is written."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)
        self.tied = torch.nn.Linear(8, 8)
        self.tied.weight = self.linear.weight
        self.register_buffer("calls", torch.zeros(3))

    def forward(self, x: Any, rest: Any) -> Any:
        self.calls.add_(1)
        y = self.tied(torch.nn.functional.gelu(self.linear(x)))
        return {"y": y, "z": (x.shape[0], rest[0].reshape(x.shape[0] * 2, -1) / x.shape[0]**0.5)}


def small() -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    batch = Dim("batch", max=64)
    args = (torch.randn(3, 5, 8), [torch.randn(3, 8)])
    return Small(), args, {"dynamic_shapes": {"x": {0: batch}, "rest": [{0: batch}]}}


def test_names_and_bounds_of_dims_are_the_users() -> None:
    model, args, options = small()
    graph = exported(model, args, **options).graph
    assert graph.bounds == (("batch", 0, 64),)
    x = next(i for i in graph.inputs if i.name == "x")
    assert isinstance(x.spec, TensorSpec) and x.spec.shape == ("batch", 5, 8)


def test_equals_eager_at_other_sizes() -> None:
    model, args, options = small()
    check(model, args, (torch.randn(1, 5, 8), [torch.randn(1, 8)]), (torch.randn(9, 5, 8), [torch.randn(9, 8)]),
          **options)


def test_a_written_buffer_is_an_update() -> None:
    model, args, options = small()
    program = exported(model, args, **options)
    first = program.graph.outputs[0]
    assert first.updates == "b_calls" and [i.name for i in program.graph.inputs if i.mutated] == ["b_calls"]
    assert evaluated(program, args)[0].tolist() == [1, 1, 1]


def test_tied_weights_are_one_array() -> None:
    model, args, options = small()
    weights = exported(model, args, **options).weights
    assert weights["linear.weight"] is weights["tied.weight"]


def test_graph_is_picklable_and_hashed_without_source_lines() -> None:
    model, args, options = small()
    graph = exported(model, args, **options).graph
    again: TorchGraph = pickle.loads(pickle.dumps(graph))
    assert again == graph and again.digest() == graph.digest() == exported(model, args, **options).graph.digest()


def test_source_lines_are_the_users() -> None:
    model, args, options = small()
    node = next(n for n in exported(model, args, **options).graph.nodes if n.op == "aten.gelu.default")
    assert "test_capture.py" in node.source and "in forward: y = self.tied" in node.source


def test_ops_without_converter_are_all_in_one_error() -> None:
    class Two(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.linalg.eigvalsh(x), torch.linalg.qr(x)

    with pytest.raises(UserError, match=r"_linalg_eigh.*test_capture.py:\d+.*linalg_qr"):
        evaluated(exported(Two(), (torch.randn(3, 3),)), (torch.randn(3, 3),))


def test_result_types() -> None:
    assert result_type([("i64", 0), ("f64", 2)]) == "f32"
    assert result_type([("f16", 0), ("f32", 1)]) == "f16"
    assert result_type([("f16", 0), ("bf16", 0)]) == "f32"
    assert result_type([("ui8", 0), ("i8", 0)]) == "i16"
    assert result_type([("i1", 0), ("i64", 2)]) == "i64"


def test_the_plain_data_needs_no_torch() -> None:
    script = "import sys; import xcc.frontends.torch.importer; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_size_that_is_computed_of_others_is_no_input_of_the_program() -> None:
    """AOTAutograd hands products of sizes to backward graphs."""
    module = make_fx(lambda x: x.reshape(x.shape[0] * 5) * 2, tracing_mode="symbolic")(torch.randn(3, 5))
    size = next(n for n in module.graph.nodes if isinstance(n.meta.get("val"), torch.SymInt)
                and not n.meta["val"].node.expr.is_Symbol)
    with module.graph.inserting_after(next(iter(module.graph.nodes))):
        given = module.graph.placeholder("n")
    given.meta["val"] = size.meta["val"]
    size.replace_all_uses_with(given)
    program = capture_fx(module)
    assert [i.kind for i in program.graph.inputs] == ["user", "size"]
    x = torch.randn(4, 5)
    compare(evaluated(program, (x,)), [x.numpy().reshape(20) * 2], 1e-6)


def test_a_size_that_a_tensor_has_is_no_input_of_the_program() -> None:
    """Dynamo hands on each free size of a call beside its tensors; a number that no tensor tells stays."""
    x, n, k = Input("x", "user", TensorSpec("f32", ("s0", 5))), Input("n", "size", SizeSpec("s0")), \
        Input("k", "size", SizeSpec("s1"))
    assert TorchGraph((n, x, k), (), ()).arguments() == [x, k]
    assert TorchGraph((n, x, k), (), (), in_spec="signature").arguments() == [n, x, k]      # what a user calls
    of_a_weight = TensorSpec("f32", ("s0",))
    assert TorchGraph((n, Input("w", "parameter", of_a_weight)), (), ()).arguments() == [n]


def test_gradients_inside_of_an_export_are_an_error_that_says_so() -> None:
    class Gradient(torch.nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            return torch.func.grad(lambda x: (x.tanh() * y).sum())(x)

    with pytest.raises(UserError, match=r"holds 'lifted_tensor_0'.*torch.func.grad.*torch.compile"):
        exported(Gradient(), (torch.randn(3), torch.randn(3)))


class Squeezed(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return x.squeeze(0) + 1


def test_squeeze_of_a_size_that_a_run_has_as_1_is_an_error() -> None:
    program = exported(Squeezed(), (torch.randn(4, 3),), dynamic_shapes={"x": {0: Dim("n")}})
    compare(evaluated(program, (torch.ones(2, 3),)), [torch.full((2, 3), 2.0).numpy()], 0)
    with pytest.raises(UserError, match="dim 0 is 1, which squeeze would drop"):
        evaluated(program, (torch.ones(1, 3),))


def test_products_say_what_torch_lets_them_be_rounded_to() -> None:
    """By the kind of the op: 1x1 filters' gradients are products of convolutions. Nothing else changes."""
    def f(x: torch.Tensor, w: torch.Tensor, g: torch.Tensor) -> Any:
        y = torch.nn.functional.conv2d(x, w)
        grads = torch.ops.aten.convolution_backward(g, x, w, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1,
                                                    [False, True, False])
        return y, grads[1], g[0, 0] @ g[0, 1]

    args = torch.randn(2, 3, 5, 5), torch.randn(4, 3, 1, 1), torch.randn(2, 4, 5, 5)
    graph = make_fx(f)(*args)

    def said(*rounded: str) -> list[str]:
        program = capture_fx(graph, rounded=rounded)
        digests.add(program.graph.digest())
        lines = str(load(program)[0]).splitlines()
        return [re.sub(r'.*"xt\.(\w+)".*', r"\1", line) for line in lines if 'precision = "tf32"' in line]

    digests: set[str] = set()
    assert said() == []
    assert said("convolution") == ["convolution", "dot_general"]
    assert said("convolution", "product") == ["convolution", "dot_general", "dot_general"]
    assert len(digests) == 3


def test_torch_flags_for_tf32_are_read() -> None:
    cuda, flags = torch.device("cuda"), torch.backends.cudnn.flags
    try:
        with flags(enabled=True, allow_tf32=True):
            assert rounded_products(torch.device("cpu")) == ()
            assert rounded_products(cuda) == ("convolution",)
            torch.set_float32_matmul_precision("high")
            assert rounded_products(cuda) == ("convolution", "product")
        with flags(enabled=True, allow_tf32=False):
            assert rounded_products(cuda) == ("product",)
    finally:
        torch.set_float32_matmul_precision("highest")
