"""A step of decoding with caches that are updated in place, from ONNX, against onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from compiled import compare
from small_graphs import model_of, node, numbers, reference

import xcc
from xcc.diagnostics import UserError
from xcc.runtime.program import Copy
from xcc.tools import xcc_cli, xcc_run

HEADS, ROWS, SIZE = 2, 16, 8
UPDATES = {"present.0.key": "past_key_values.0.key", "present.0.value": "past_key_values.0.value"}


def decoder(op: str) -> Any:
    """Writes a row of keys and of values into caches of ROWS rows, and attends over all of them."""
    if op == "ScatterND":       # [rows, heads, size]: an index of the first dim
        shape, places = (ROWS, HEADS, SIZE), [node("Unsqueeze", "at axes", "places")]
        writes = [node(op, f"past_key_values.0.{n} places {n}", f"present.0.{n}") for n in ("key", "value")]
        rows = {n: numbers(1, HEADS, SIZE) for n in ("key", "value")}
        heads = [node("Transpose", f"present.0.{n}", f"all.{n}", perm=[1, 0, 2]) for n in ("key", "value")]
    else:                       # [heads, rows, size]: an index for each element
        shape, places = (HEADS, ROWS, SIZE), [node("Expand", "at shape", "places")]
        writes = [node(op, f"past_key_values.0.{n} places {n}", f"present.0.{n}", axis=1) for n in ("key", "value")]
        rows = {n: numbers(HEADS, 1, SIZE) for n in ("key", "value")}
        heads = [node("Identity", f"present.0.{n}", f"all.{n}") for n in ("key", "value")]
    attend = [node("Transpose", "all.key", "turned", perm=[0, 2, 1]), node("MatMul", "query turned", "scores"),
              node("Softmax", "scores", "weights", axis=-1), node("MatMul", "weights all.value", "y")]
    inputs = {"query": numbers(HEADS, 1, SIZE), "at": np.array([3]), **rows,
              **{source: numbers(*shape) for source in UPDATES.values()}}
    model = model_of([*places, *writes, *heads, *attend], inputs, "y " + " ".join(UPDATES),
                     {"axes": np.array([1]), "shape": np.array([HEADS, 1, SIZE])})
    return model, inputs


@pytest.mark.parametrize("op", ["ScatterND", "ScatterElements"])
def test_steps(op: str) -> None:
    model, inputs = decoder(op)
    made = xcc.compile(model, updates=UPDATES, cache=False, isolate=False)
    assert made.updates == UPDATES and not any(isinstance(s, Copy) for s in made.artifact.program.body)
    caches = {name: inputs[name].copy() for name in UPDATES.values()}
    for step in (0, 5, 15):
        given = inputs | {"at": np.array([step]), "query": numbers(HEADS, 1, SIZE)}
        wanted = reference(model, given | caches)
        got = made.run(given | caches)
        for (name, value), want in zip(got.items(), wanted, strict=True):
            compare(value, want, 4)
            assert name == "y" or value is caches[UPDATES[name]]


def test_command_line(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    """The option is proposed, and nothing is updated without it; comparing gives both sides the same caches."""
    monkeypatch.chdir(tmp_path)
    onnx.save(decoder("ScatterND")[0], "m.onnx")
    assert xcc_cli.main(["m.onnx", "-v", "--no-cache"]) == 0
    proposed = " ".join(f"--update {new}={old}" for new, old in UPDATES.items())
    assert proposed in capsys.readouterr().err and not xcc.load("m.xcm").updates
    assert xcc_cli.main(["m.onnx", "--no-cache", *(w for n in UPDATES for w in ("--update", f"{n}={UPDATES[n]}"))]) == 0
    assert xcc.load("m.xcm").updates == UPDATES
    assert xcc_run.main(["m.xcm", "--random", "--compare", "m.onnx"]) == 0


@pytest.mark.parametrize(("updates", "problem"), [
    ({"z": "at"}, "there is no output 'z'; there are 'y', 'present.0.key'"),
    ({"y": "z"}, "output 'y' updates 'z', and there is no such input"),
    ({"y": "key"}, r"output 'y' is f32\[2, 1, 8\] and cannot update 'key', which is f32\[1, 2, 8\]"),
    ("y", "updates is 'y'; give a dict by name")])
def test_options_that_do_not_fit(updates: Any, problem: str) -> None:
    with pytest.raises(UserError, match=problem):
        xcc.compile(decoder("ScatterND")[0], updates=updates, cache=False, isolate=False)
