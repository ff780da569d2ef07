"""Options are checked when made; command-line text reads back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from xcc.diagnostics import UserError
from xcc.options import CompileOptions, parse_dim, parse_fix, parse_target


def test_make() -> None:
    o = CompileOptions.make("nvptx,code=ptx", dims={"batch": (1, 64), "seq": 128}, precision="f16")
    assert o.target == "nvptx"
    assert o.option("code") == "ptx"
    assert o.option("absent", "x") == "x"
    assert o.dims == (("batch", 1, 64), ("seq", 128, 128))
    assert o.code_key() != CompileOptions.make("nvptx").code_key()
    assert o.workers >= 1


def test_fixed_inputs_are_text_that_reads_back() -> None:
    o = CompileOptions.make(fix={"sr": 16000, "a": np.array([[1.5, 2]], np.float32), "on": True, "t": (1, 2)})
    assert o.fix == (("sr", "16000"), ("a", "[[1.5, 2.0]]"), ("on", "true"), ("t", "[1, 2]"))
    assert o.fixed == {"sr": 16000, "a": [[1.5, 2.0]], "on": True, "t": [1, 2]}
    assert hash(o) == hash(CompileOptions.make(fix=o.fixed))


@pytest.mark.parametrize(("kwargs", "what"), [
    ({"target": "tpu"}, "there is no target 'tpu'; targets are amdgcn, cpu, nvptx"),
    ({"precision": "f31"}, "precision 'f31' is none of"),
    ({"colour": 1}, "there is no option 'colour'"),
    ({"dims": {"n": (4, 2)}}, "n=4..2"),
    ({"dims": {"n": "many"}}, "give a number or"),
    ({"fix": {"sr": "fast"}}, 'fix sr="fast": the value must be a number'),
    ({"fix": {"sr": object()}}, "give a number, nested lists or an array"),
    ({"threads": -1}, "must not be negative"),
    ({"threads": "2"}, "threads is '2', which is no int"),
    ({"chip": None}, "chip is None, which is no str"),
    ({"target": None}, "target is None; give a name"),
    ({"target": "cpu,unroll=4"}, "target 'cpu' has no option 'unroll=4'; it has none"),
    ({"target": "nvptx,chip=sm_80"}, "it has code=cubin|ptx; the chip is said beside it: --chip=sm_80"),
    ({"target": "nvptx,code"}, "target 'nvptx' has no option 'code=1'; it has code=cubin|ptx"),
    ({"dims": [1]}, "dims is .*; give a dict by name"),
    ({"dims": {"n": 1.5}}, "give a number or"),
    ({"dims": {"n": 1 << 63}}, "low <= high < 2\\^63"),
    ({"fix": [1]}, "fix is .*; give a dict by name"),
])
def test_bad(kwargs: dict[str, Any], what: str) -> None:
    with pytest.raises(UserError, match=what):
        CompileOptions.make(**kwargs)


def test_texts() -> None:
    assert parse_dim("n=3") == ("n", 3, 3)
    assert parse_dim("n=1..64") == ("n", 1, 64)
    assert parse_fix("sr=16000") == ("sr", "16000")
    assert parse_fix("a=[[1, 2.5]]") == ("a", "[[1, 2.5]]")
    with pytest.raises(UserError, match="NAME=VALUE"):
        parse_fix("sr")
    with pytest.raises(UserError, match="nested lists of numbers"):
        parse_fix("sr={}")
    assert parse_target("nvptx") == ("nvptx", ())
    with pytest.raises(UserError, match="NAME=SIZE"):
        parse_dim("n")
