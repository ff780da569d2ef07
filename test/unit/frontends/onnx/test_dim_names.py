"""Names of dims: those of the model, different ones stay different, in dumps and options too."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import xcc
from xcc.context import new_context, parse_module
from xcc.diagnostics import UserError
from xcc.dialects import xt
from xcc.dim_text import quoted
from xcc.frontends.onnx.importer import load
from xcc.symbolic import bare_symbol, floordiv, parse, sym
from xcc.tools.xcc_cli import main as xcc_main
from xcc.tools.xcc_run import main as run_main

sys.path.insert(0, str(Path(__file__).parent))
from onnx_models import INT64, model, node, value

ODD = ["s", "s_", "past seq", "past_seq", "T-1", "T_1", "s0 + 1", "max", "floordiv(n, 2)", "12", "-1", "d\u00e9but",
       "it's", 'a"b\\', "n=3", "x_dim0", "d0", "step.0", " n", "\n1"]
names = st.one_of(st.sampled_from(ODD), st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8))


def names_of(module: Any) -> list[str | None]:
    """Those of the dims of the function's arguments."""
    kind = module.body.operations[0].type
    return [bare_symbol(d) for t in kind.inputs for d in xt.shape_of(t)]


@settings(max_examples=40, deadline=None)
@given(st.lists(names, min_size=2, max_size=6))
@example([*ODD, "", "?", "?", "", "y_dim0", "y_dim0_1"])
def test_different_names_are_different_dims(given_names: list[str]) -> None:
    """Those that are there more than once, and only those, are one; a dump reads back as the same module."""
    half = len(given_names) // 2
    m = model([node("Neg", ["x"], ["z"]), node("Neg", ["y"], ["w"])],
              [value("x", given_names[:half]), value("y", given_names[half:])], [value("z", None), value("w", None)])
    bound = next((n for n in given_names if n.isalnum()), None)
    module, _ = load(m, dims={bound: (1, 64)} if bound else {})
    found = names_of(module)
    unknown = [n for n in given_names if not any(map(str.isalnum, n))]
    assert all(f == n for f, n in zip(found, given_names, strict=True) if n not in unknown)
    assert len(set(found)) == len({*given_names} - {*unknown}) + len(unknown)
    again = parse_module(str(module), new_context())
    assert str(again) == str(module) and names_of(again) == found


@given(names, names)
def test_text_of_expressions(a: str, b: str) -> None:
    d = floordiv(sym(a) * 3 + sym(b), 2) * sym(b) - 1
    assert parse(str(d)) == d and parse(quoted(a)) == sym(a) == parse(str(sym(a)))
    assert (sym(a) == sym(b)) == (a == b) == (str(sym(a)) == str(sym(b)))


def test_names_of_values_and_dims_are_different() -> None:
    """An element of an input is called as no dim is, nor an element of another input."""
    m = model([node("Reshape", ["x", "s"], ["y"]), node("Expand", ["one", "s_0"], ["z"])],
              [value("x", ["s_1", "s_0_0"]), value("s", [2], INT64), value("s_0", [2], INT64)],
              [value("y", None), value("z", None)], initializers={"one": np.ones(1, np.float32)})
    text = str(load(m)[0])
    assert 'xt.values = ["s_0", "s_1_value"]' in text and 'xt.values = ["s_0_0_value", "s_0_1"]' in text


def product() -> Any:
    """x @ y beside a counted size and a bounded one, whose dims and values have names that are not plain."""
    nodes = [node("MatMul", ["x", "y"], ["o"]), node("NonZero", ["x"], ["/a b/places"]),
             node("Cast", ["/a b/places"], ["p"], to=1), node("ReduceMax", ["lengths"], ["the longest"], keepdims=0),
             node("Range", ["zero", "the longest", "one"], ["r"])]
    return model(nodes, [value("x", ["past seq", "k"]), value("y", ["k", "past_seq"]), value("lengths", ["k"], INT64)],
                 [value("o", None), value("p", None), value("r", None, INT64)],
                 initializers={"zero": np.array(0), "one": np.array(1)})


def test_compiled() -> None:
    made = xcc.compile(product(), dims={"past seq": (2, 64), "the longest": (0, 9)}, cache=False, isolate=False)
    assert [i.shape for i in made.inputs] == [("past seq", "k"), ("k", "past_seq"), ("k",)]
    assert [o.shape for o in made.outputs] == [("past seq", "past_seq"), (2, "/a b/places_count"), ("the longest",)]
    rng = np.random.default_rng(0)
    for n, k, m in ((3, 5, 7), (2, 2, 1), (9, 1, 4)):
        x, y = (rng.standard_normal(s).astype(np.float32) for s in ((n, k), (k, m)))
        got = made.run({"x": x, "y": y, "lengths": np.arange(k)})
        np.testing.assert_allclose(got["o"], x @ y, rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(got["p"], np.stack(np.nonzero(x)))
        np.testing.assert_array_equal(got["r"], np.arange(k - 1))
    with pytest.raises(UserError, match=r"'past seq' is 1, the model was compiled for 2\.\.64"):
        made.run({"x": np.ones((1, 2), np.float32), "y": np.ones((2, 1), np.float32), "lengths": np.zeros(2, np.int64)})


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Options take the model's names, errors show them so that a shell does, and a dumped stage goes on."""
    source, made, stages = tmp_path / "m.onnx", str(tmp_path / "m.xcm"), tmp_path / "stages"
    source.write_bytes(product().SerializeToString())
    assert xcc_main([str(source), "-o", made]) == 1
    assert "--dim 'the longest=0..100'" in capsys.readouterr().err
    assert xcc_main([str(source), "--dim", "the longest=0..9", "--dim", "past seq=3", "-o", made,
                     f"--dump-stages={stages}"]) == 0
    assert xcc_main([str(stages / "01-kernels.mlir"), "--chip=x86-64-v3", "-o", made]) == 0
    capsys.readouterr()
    assert run_main([made, "--random", "--dim", "k=2"]) == 1
    assert "give the size of 'past_seq' with --dim past_seq=SIZE" in capsys.readouterr().err
    assert run_main([made, "--random", "--dim", "k=2", "--dim", "past_seq=4"]) == 0
    assert "o: f32[3, 4]" in capsys.readouterr().out
