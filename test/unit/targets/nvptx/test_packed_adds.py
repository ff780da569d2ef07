"""Additions of vectors of i16 are no `add.s16x2`."""

import re

import pytest

from xcc.targets.base import chip_of, get_target
from xcc.targets.nvptx.emit import _assembly, _parsed
from xcc.targets.nvptx.packed_adds import without_packed_adds

KERNEL = """
define ptx_kernel void @k(ptr addrspace(1) %p, ptr addrspace(1) %q, i32 %n) {{
  %x = load {type}, ptr addrspace(1) %p
  %y = load {type}, ptr addrspace(1) %q
  %s = add {type} %x, {right}
  {used}
  ret void
}}
"""
WHOLE = "store {type} %s, ptr addrspace(1) %p"
HALF = """%h = extractelement {type} %s, i64 1
  store i16 %h, ptr addrspace(1) %p"""


def ptx(count, right, used):
    kind, chip = f"<{count} x i16>", chip_of(get_target("nvptx"), "sm_90a")
    return _assembly(_parsed(KERNEL.format(type=kind, right=right, used=used.format(type=kind)), chip), chip)


@pytest.mark.parametrize("used", [WHOLE, HALF])
@pytest.mark.parametrize(("count", "right"),
                         [(2, "<i16 3, i16 4>"), (4, "splat (i16 5)"), (2, "%y"), (8, "splat (i16 7)")])
def test_no_packed_addition_is_left(count, right, used):
    text = ptx(count, right, used)
    assert "s16x2" not in text and len(re.findall(r"add\.s16", text)) == (count if used is WHOLE else 1)


NEIGHBOURS = """
define ptx_kernel void @k(ptr addrspace(1) %p, i16 %a, i16 %b) {
  %x = add i16 %a, 1
  %y = add i16 %b, 1
  store i16 %x, ptr addrspace(1) %p
  %q = getelementptr i16, ptr addrspace(1) %p, i64 1
  store i16 %y, ptr addrspace(1) %q
  ret void
}
"""


def test_neighbours_make_no_vector():
    chip = chip_of(get_target("nvptx"), "sm_90a")
    text = _assembly(_parsed(NEIGHBOURS, chip), chip)
    assert "s16x2" not in text and len(re.findall(r"add\.s16", text)) == 2


def test_other_lines_stay():
    text = "define void @f(<2 x i16> %a) {\n  %m = mul <2 x i16> %a, %a\n  ret void\n}\n"
    assert without_packed_adds(text) == text
    floats = "define void @f(<2 x half> %a) {\n  %m = fadd <2 x half> %a, %a\n  ret void\n}\n"
    assert without_packed_adds(floats) is floats


def test_numbered_values_and_operands_of_each_kind():
    text = "  %3 = add nuw nsw <2 x i16> splat (i16 2), <i16 1, i16 poison>\n"
    assert without_packed_adds(text) == """\
  %packed.0.0.left = extractelement <2 x i16> splat (i16 2), i64 0
  %packed.0.0.right = extractelement <2 x i16> <i16 1, i16 poison>, i64 0
  %packed.0.0 = add i16 %packed.0.0.left, %packed.0.0.right
  %packed.0.0.whole = insertelement <2 x i16> poison, i16 %packed.0.0, i64 0
  %packed.0.1.left = extractelement <2 x i16> splat (i16 2), i64 1
  %packed.0.1.right = extractelement <2 x i16> <i16 1, i16 poison>, i64 1
  %packed.0.1 = add i16 %packed.0.1.left, %packed.0.1.right
  %3 = insertelement <2 x i16> %packed.0.0.whole, i16 %packed.0.1, i64 1
"""
