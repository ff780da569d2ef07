"""LSTM, GRU and RNN of PyTorch programs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch_programs import check, check_traced, compare, evaluated, gradients, traced

from xcc.frontends.torch.layers import whole_layers

KINDS: dict[str, Any] = {
    "lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "tanh": torch.nn.RNN,
    "relu": lambda *a, **k: torch.nn.RNN(*a, nonlinearity="relu", **k)}


@pytest.mark.parametrize("kind, layers, both, first, bias", [
    ("lstm", 2, True, True, True), ("gru", 2, False, False, True), ("gru", 1, True, True, False),
    ("lstm", 1, False, False, False), ("tanh", 2, True, False, True), ("relu", 1, False, True, True)])
def test_layers_and_directions(kind: str, layers: int, both: bool, first: bool, bias: bool) -> None:
    model = KINDS[kind](7, 6, layers, bidirectional=both, batch_first=first, bias=bias).eval()
    args, *others = ((torch.randn(n, 2, 7) if first else torch.randn(2, n, 7),) for n in (3, 1, 9))
    program = check(model, args, *others, dynamic_shapes=({0 if first else 1: torch.export.Dim("batch")},))
    assert len(program.graph.nodes) <= 4


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_given_states(kind: str) -> None:
    model = KINDS[kind](4, 3, 2)
    states = [torch.randn(2, 3, 3) for _ in range(2 if kind == "lstm" else 1)]
    check(model, (torch.randn(5, 3, 4), tuple(states) if kind == "lstm" else states[0]))


CELLS: dict[str, Any] = {"lstm": torch.nn.LSTMCell, "gru": torch.nn.GRUCell, "rnn": torch.nn.RNNCell}


@pytest.mark.parametrize("kind", CELLS)
def test_cells(kind: str) -> None:
    model = CELLS[kind](4, 3, bias=kind != "gru")
    program = check(model, (torch.randn(2, 4),))
    assert ("rnn_tanh_cell" if kind == "rnn" else f"{kind}_cell") in program.graph.text()


@pytest.mark.parametrize("kind, both, first, bias", [
    ("lstm", True, False, True), ("gru", False, True, False), ("tanh", True, False, False),
    ("relu", False, False, True)])
def test_gradients(kind: str, both: bool, first: bool, bias: bool) -> None:
    layers = 2 if kind == "gru" else 1
    model = KINDS[kind](5, 4, layers, bidirectional=both, batch_first=first, bias=bias)
    names = [name for name, _ in model.named_parameters()]

    def f(x: Any, h: Any, c: Any, *params: Any) -> Any:
        states = (h, c) if kind == "lstm" else h
        return torch.func.functional_call(model, dict(zip(names, params, strict=True)), (x, states))

    def given(length: int) -> tuple[Any, ...]:
        x = torch.randn(3, length, 5) if first else torch.randn(length, 3, 5)
        return x, *(torch.randn(layers * (1 + both), 3, 4) for _ in range(2)), *(p.detach() for p in model.parameters())

    def of(*tensors: Any) -> Any:
        used = tensors if kind == "lstm" else (*tensors[:2], *tensors[3:])
        return gradients(f if kind == "lstm" else lambda x, h, *p: f(x, h, h, *p))(*used)

    with whole_layers():
        program = traced(of, given(6))
    ops = [n.op for n in program.graph.nodes]
    assert ops.count("xcc.recurrent_backward.default") == layers * (1 + both)
    for length in (6, 1, 9):
        args = given(length)
        compare(evaluated(program, args), [t.numpy() for t in of(*args)], 1e-4)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn_tanh"])
def test_the_ops_run_in_torch(kind: str, reverse: bool) -> None:
    """For graphs that are not compiled."""
    gates = {"lstm": 4, "gru": 3}.get(kind, 1)
    shapes = (5, 2, 3), (gates * 4, 3), (gates * 4, 4), (gates * 4,), (gates * 4,), (2, 4), (2, 4)
    x, *others = (torch.randn(s) for s in shapes)
    weights, states = others[:4], others[4:] if kind == "lstm" else others[5:]
    layer = (x, weights, states)
    made = torch.ops.xcc.recurrent(kind, *layer, reverse)
    check_traced(lambda *t: torch.ops.xcc.recurrent(kind, t[0], t[1:5], t[5:], reverse), x, *weights, *states)
    grads = [torch.randn_like(t) for t in made]
    n = len(grads)
    check_traced(lambda *t: torch.ops.xcc.recurrent_backward(kind, t[:n], t[n], t[n + 1:n + 5], t[n + 5:-1], t[-1],
                                                             reverse), *grads, x, *weights, *states, made[0])
