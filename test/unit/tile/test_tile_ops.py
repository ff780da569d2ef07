"""Programs of each op written by hand: compiled for this CPU, and for GPUs whose code the interpreter runs."""

import numpy as np
import one_op_programs
import pytest

from xcc import tile
from xcc.diagnostics import UserError
from xcc.dialects.tile import OPS

TEXTS = one_op_programs.PROGRAMS
TARGETS = [("cpu", ""), ("nvptx", "sm_80"), ("nvptx", "sm_90a"), ("amdgcn", "gfx942"), ("amdgcn", "gfx1100")]


@pytest.mark.parametrize("target, chip", TARGETS, ids=lambda t: t)
@pytest.mark.parametrize("name", TEXTS)
def test_means_the_same_everywhere(name, target, chip):
    text = TEXTS[name]
    want, got = one_op_programs.arrays(text), one_op_programs.arrays(text)
    tile.evaluate(text, want)
    tile.run(text, got, target, chip)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-6, atol=2e-6)
    assert any((a != b).any() for a, b in zip(want, one_op_programs.arrays(text), strict=True))


def test_every_op_has_a_program():
    """Prints are of evaluations, and what accumulates in a workgroup's memory of lowered programs."""
    assert [op for op in OPS if not any(f'"tile.{op}"' in t for t in TEXTS.values())] == ["print", "accumulate"]


def test_gpu_code_has_no_races():
    text = one_op_programs.program(one_op_programs.READ + """
  "tile.store"(%t, %x, %c1, %c1) : (vector<4x16xf32>, memref<?x?xf32>, index, index) -> ()
  %u = "tile.load"(%x, %zero, %c0, %c1) {shape = [4, 16]} : (memref<?x?xf32>, f32, index, index) -> vector<4x16xf32>
  "tile.store"(%u, %y, %c0, %c0) : (vector<4x16xf32>, memref<?x?xf32>, index, index) -> ()
""")
    want, got = one_op_programs.arrays(text), one_op_programs.arrays(text)
    tile.evaluate(text, want)
    tile.compile(text, "nvptx", "sm_80", emit=False).interpret(got)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)


def test_assertions_and_prints_are_of_evaluations(capsys):
    body = one_op_programs.READ + """
  "tile.print"(%c1) {prefix = "one"} : (index) -> ()
  %no = arith.cmpf one, %t, %t : vector<4x16xf32>
  "tile.assert"(%no) {message = "never"} : (vector<4x16xi1>) -> ()
"""
    text = one_op_programs.program(body)
    with pytest.raises(UserError, match=r"-:\d+:\d+: program \[0, 0, 0\]: assertion failed: never"):
        tile.evaluate(text, one_op_programs.arrays(text))
    assert capsys.readouterr().out == "[0, 0, 0] one 1\n"
    with pytest.raises(UserError, match=r"'tile.print' .*no target has a rule"):
        tile.compile(text)
