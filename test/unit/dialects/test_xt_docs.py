"""The op reference is the dialect's, every op says what it is, and evaluates or is control."""

from pathlib import Path

import pytest

from xcc.dialects import xt
from xcc.dialects.xt.op import ACCESS, OpDefinition
from xcc.passes.xt.decompose import load
from xcc.tools import docs_xt

ROOT = Path(__file__).parents[3]


def test_reference_is_up_to_date():
    assert (ROOT / "docs" / "xt-ops.md").read_text() == docs_xt.reference()


@pytest.mark.parametrize("name", sorted(xt.OPS))
def test_every_op_is_complete(name):
    cls = xt.OPS[name]
    assert cls.__doc__ and cls.access in ACCESS
    assert f"`{name}(" in docs_xt.reference()
    if cls.access not in ("control", "source", "scalar"):
        assert cls.evaluate is not OpDefinition.evaluate
        assert cls.infer is not OpDefinition.infer


def test_every_composite_decomposes():
    composites = {n for n, c in xt.OPS.items() if c.access == "composite"}
    assert composites <= set(load())
