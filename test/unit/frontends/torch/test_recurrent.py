"""LSTM, GRU and RNN of PyTorch programs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch_programs import check

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
