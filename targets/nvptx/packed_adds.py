"""Additions of vectors of i16, one element at a time.

NVPTX adds two i16 in one instruction (`add.s16x2`) on sm_90 and later. Where code uses one half of such a sum, ptxas of
CUDA 13.0 (not of 13.5), and drivers of that time, add this half alone, and 0 in the place of a constant:

    mov.b32 %r2, 196610; add.s16x2 %r3, %r1, %r2; mov.b32 {%rs1, _}, %r3      ->      VIADD.16x2 R0, R0, 0x0
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_ADD = re.compile(r"^ +(?P<name>%\S+) = add (?:nuw |nsw )*(?P<type><(?P<count>\d+) x i16>) (?P<operands>.+)$")
_CONSTANT = re.compile(r"<[^>]*>|splat \([^)]*\)|[^\s,]+")


def without_packed_adds(text: str) -> str:
    """LLVM IR that computes the same as `text`, and adds no vectors of i16."""
    if "x i16>" not in text:
        return text
    return "\n".join(line for n, given in enumerate(text.splitlines()) for line in _lines(given, n)) + "\n"


def _lines(line: str, number: int) -> Iterator[str]:
    found = _ADD.match(line)
    if found is None:
        yield line
        return
    kind, count = found["type"], int(found["count"])
    left, right = _CONSTANT.findall(found["operands"])[:2]
    whole = "poison"
    for n in range(count):
        at = f"%packed.{number}.{n}"
        made = found["name"] if n == count - 1 else f"{at}.whole"
        yield f"  {at}.left = extractelement {kind} {left}, i64 {n}"
        yield f"  {at}.right = extractelement {kind} {right}, i64 {n}"
        yield f"  {at} = add i16 {at}.left, {at}.right"
        yield f"  {made} = insertelement {kind} {whole}, i16 {at}, i64 {n}"
        whole = made
