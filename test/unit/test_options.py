"""Options are checked when made; command-line text reads back."""

from __future__ import annotations

from typing import Any

import pytest

from xcc.diagnostics import UserError
from xcc.options import CompileOptions, parse_dim, parse_target


def test_make() -> None:
    o = CompileOptions.make("cpu,unroll=4,fast", dims={"batch": (1, 64), "seq": 128}, precision="f16")
    assert o.target == "cpu"
    assert o.option("unroll") == "4"
    assert o.option("fast") == "1"
    assert o.option("absent", "x") == "x"
    assert o.dims == (("batch", 1, 64), ("seq", 128, 128))
    assert o.code_key() != CompileOptions.make("cpu").code_key()
    assert o.workers >= 1


@pytest.mark.parametrize(("kwargs", "what"), [
    ({"target": "tpu"}, "there is no target 'tpu'; targets are amdgcn, cpu, nvptx"),
    ({"precision": "f31"}, "precision 'f31' is none of"),
    ({"colour": 1}, "there is no option 'colour'"),
    ({"dims": {"n": (4, 2)}}, "n=4..2"),
    ({"dims": {"n": "many"}}, "give a number or"),
    ({"threads": -1}, "must not be negative"),
])
def test_bad(kwargs: dict[str, Any], what: str) -> None:
    with pytest.raises(UserError, match=what):
        CompileOptions.make(**kwargs)


def test_texts() -> None:
    assert parse_dim("n=3") == ("n", 3, 3)
    assert parse_dim("n=1..64") == ("n", 1, 64)
    assert parse_target("nvptx") == ("nvptx", ())
    with pytest.raises(UserError, match="NAME=SIZE"):
        parse_dim("n")
