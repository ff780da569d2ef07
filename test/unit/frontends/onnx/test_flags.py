"""Counts of the flags of a mask that are set, as sizes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from xcc.diagnostics import UserError
from xcc.dialects.xt.interpret import interpret
from xcc.frontends.onnx.importer import load

sys.path.insert(0, str(Path(__file__).parent))
from onnx_models import BOOL, INT64, i64, model, node, value

INT8, INT32 = 3, 6


def masks(nodes: list[Any], outputs: str) -> Any:
    """`nodes` on the mask m: [b, n] of booleans, o: [b, n] another one, and k: [n] of integers."""
    return model(nodes, [value("m", ["b", "n"], BOOL), value("o", ["b", "n"], BOOL), value("k", ["n"], INT64)],
                 [value(name, None, INT64) for name in outputs.split()],
                 initializers={"one": i64(1), "flatten": i64(-1), "axis": i64(0)})


def types(source: Any) -> list[str]:
    module, _ = load(source)
    return [str(t) for t in module.body.operations[0].type.results]


def counts(source: Any) -> int:
    """How many ops count."""
    text = str(load(source)[0])
    return text.count("xt.nonzero") + text.count("xt.compress")


def expanded(mask: str, by: str, kind: int = INT64) -> list[Any]:
    """e`by`: as many as flags of `mask` are set."""
    return [node("Cast", [mask], [f"c{by}"], to=kind), node("ReduceSum", [f"c{by}"], [f"s{by}"], keepdims=0),
            node("Cast", [f"s{by}"], [f"w{by}"], to=INT64), node("Unsqueeze", [f"w{by}", "axis"], [f"u{by}"]),
            node("Expand", ["one", f"u{by}"], [f"e{by}"])]


PLACES = node("NonZero", ["m"], ["at"])
NOT, AGAIN = node("Not", ["m"], ["n1"]), node("Not", ["m"], ["n2"])


@pytest.mark.parametrize("before", [
    [PLACES, *expanded("m", "0")],
    [PLACES, *expanded("m", "0", INT32)],
    [NOT, AGAIN, node("NonZero", ["n1"], ["at"]), *expanded("n2", "0")],
    [NOT, node("Not", ["n1"], ["n2"]), node("NonZero", ["n2"], ["at"]), *expanded("m", "0")],
    [PLACES, node("Reshape", ["m", "flatten"], ["r"]), *expanded("r", "0")],
    [node("Cast", ["m"], ["i"], to=INT64), node("NonZero", ["i"], ["at"]), *expanded("m", "0")],
    [node("NonZero", ["k"], ["at"]), node("Cast", ["k"], ["b"], to=BOOL), *expanded("b", "0")],
], ids=["same", "i32", "not", "twice-not", "reshape", "as-integers", "of-integers"])
def test_the_count_is_that_of_nonzero(before: list[Any]) -> None:
    source = masks(before, "at e0")
    places, rows = types(source)
    assert "at_count" in places and "at_count" in rows
    assert counts(source) == 1


def test_the_places_of_one_mask_are_one() -> None:
    source = masks([PLACES, node("NonZero", ["m"], ["also"]), node("Add", ["at", "also"], ["y"])], "y")
    assert counts(source) == 1


@pytest.mark.parametrize("nodes", [
    [PLACES, *expanded("o", "0")],
    [NOT, PLACES, *expanded("n1", "0")],
    [*expanded("m", "0"), PLACES],
], ids=["another", "the-rest", "before"])
def test_a_symbol_of_its_own(nodes: list[Any]) -> None:
    source = masks(nodes, "at e0")
    assert "at_count" not in types(source)[1]
    assert counts(source) == 2


def test_two_sums_of_one_mask() -> None:
    source = masks([*expanded("m", "0"), *expanded("m", "1"), node("Add", ["e0", "e1"], ["y"])], "y")
    assert counts(source) == 1


@pytest.mark.parametrize("flags", [[0, 0, 0], [1, 0, 1], [1, 1, 1]])
def test_numbers(flags: list[int]) -> None:
    mask = np.array([flags], bool)
    module, weights = load(masks([NOT, node("NonZero", ["n1"], ["at"]), *expanded("n1", "0"), *expanded("m", "1")],
                                 "at e0 e1"))
    at, rest, there = interpret(module, {"m": mask, "o": mask, "k": np.zeros(3, np.int64)}, weights)
    np.testing.assert_array_equal(at, np.nonzero(~mask))
    assert (rest.shape, there.shape) == (((~mask).sum(),), (mask.sum(),))


@pytest.mark.parametrize("nodes", [
    expanded("k", "0"), expanded("m", "0", INT8),
    [node("Cast", ["m"], ["c"], to=INT64), node("ReduceSum", ["c", "axis"], ["s"], keepdims=0),
     node("Gather", ["s", "axis"], ["g"]), node("Expand", ["one", "g"], ["e0"])],
], ids=["no-flags", "wraps", "of-an-axis"])
def test_what_is_no_count(nodes: list[Any]) -> None:
    """Sums of other numbers, in a type in which they wrap, or along an axis, have no limit that is known."""
    with pytest.raises(UserError, match="decides a shape"):
        load(masks(nodes, "e0"))
