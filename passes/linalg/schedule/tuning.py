"""The tuning database: schedules found by measurement, for `configure` to read before it asks the strategy.

A text file, one entry a line, sorted, so that files merge line by line::

    znver5 | contraction f32 56x56x64 r 3x3x64 ~9a80c1f6 #1f0c2d9a | {block = array<i64: ...>, ...}

The first field is the chip, the second the kernel's signature, the third the value of ``xcc.config``. The signature is
the kind of the main op, the type, its loops, the family (``~``: operands, accesses, fused ops and types, without the
sizes of 16 and more but with what of 16 divides them) and the whole kernel (``#``).

Products also have entries ``product f16 BATCHxMxN r K ~order | {parts = 4 : i64}``: into how many parts
``split-contractions`` cuts the sum, 1 for none. They have a family and no ``#``.

What has no entry takes the nearest one of its family whose loops are each within a factor of NEAR: the sum of the
factors' logarithms is the distance, and the first line wins a draw. Nothing else decides, so a lookup is deterministic.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from xcc._mlir import ir
from xcc.diagnostics import UserError
from xcc.dim_expr import Expr
from xcc.passes.linalg.kernel.kernel import Kernel, Op
from xcc.passes.linalg.schedule.schedule import Schedule
from xcc.targets.folders import file

SEPARATOR = " | "
NAME = "# xcc tuning database"
HEADER = f"{NAME} 2: chip | kernel | xcc.config"
"""The number counts the forms that schedules have had."""
NEAR = 1.5
"""The factor between sizes that one schedule serves."""
EXACT = 16
"""Sizes below are part of the family: windows, heads, channels of images."""


def signature(kernel: Kernel) -> str:
    """What a schedule depends on: the main op's loops in the open, the family and the whole structure as hashes."""
    from xcc.passes.linalg.kernel.domain import contraction_of

    op = contraction_of(kernel) or next((o for o in kernel.ops if o.is_reduction), None)
    kind = "contraction" if contraction_of(kernel) else "reduction" if op else "pointwise"
    if op is None:
        loops = "x".join(str(d) for d in kernel.results[0].dims) or "scalar"
    else:
        parallel = [str(d) for d, r in zip(op.loops, op.reduction, strict=True) if not r and d != 1]
        reduced = [str(d) for d, r in zip(op.loops, op.reduction, strict=True) if r]
        loops = f"{'x'.join(parallel) or 'scalar'} r {'x'.join(reduced)}"
    family, digest = (hashlib.blake2b("\n".join(_structure(kernel, general)).encode(), digest_size=size).hexdigest()
                      for general, size in ((True, 4), (False, 6)))
    return f"{kind} {kernel.results[0].element} {loops} ~{family} #{digest}"


def _sizes(dims: Iterable[int | Expr], general: bool) -> str:
    """`dims` as text; in general, of a size only what of 16 divides it."""
    return str([f"n{math.gcd(d, EXACT)}" if general and isinstance(d, int) and d >= EXACT else str(d) for d in dims])


def _structure(kernel: Kernel, general: bool) -> Iterable[str]:
    names = {t: f"a{n}" for n, t in enumerate(kernel.args)}
    for t in kernel.args:
        yield f"{_sizes(t.dims, general)} {t.element}"
    for n, op in enumerate(kernel.ops):
        for t in op.results:
            names[t] = f"v{n}.{t.index}"
        reads = [f"{names.get(t, str(t.constant))}{[str(e) for e in a]}" for t, a in op.inputs]
        outs = [[str(e) for e in a] for a in op.outs]
        yield f"{_sizes(op.loops, general)} {op.reduction} {reads} {outs} {_body(op)}"
    yield str([names[t] for t in kernel.results])


def _body(op: Op) -> str:
    if op.operation is None:
        return "view"
    return ";".join(str(inner.operation.name) for inner in op.block.operations)


class Database:
    """(chip, signature) -> the text of a schedule."""

    def __init__(self, entries: dict[tuple[str, str], str] | None = None) -> None:
        self.entries = dict(entries or {})

    @staticmethod
    def parse(text: str, where: str) -> Database:
        """Reads the text form; UserError names the line that is wrong."""
        found = Database()
        if text.startswith(NAME) and not text.startswith(HEADER):
            raise UserError(f"{where}: its schedules are in the form of an older xcc: tune again")
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            fields = line.split(SEPARATOR)
            if len(fields) != 3 or not fields[2].startswith("{"):
                raise UserError(f"{where}:{number}: not an entry of a tuning database (chip | kernel | config)")
            found.entries[fields[0], fields[1]] = fields[2]
        return found

    @staticmethod
    def read(path: str | Path) -> Database:
        """The database in a file; an absent file is an error."""
        try:
            return Database.parse(Path(path).read_text(), str(path))
        except (OSError, UnicodeDecodeError) as e:
            raise UserError(f"{path}: cannot read the tuning database: {e}") from None

    def text(self) -> str:
        lines = sorted(SEPARATOR.join((chip, key, value)) for (chip, key), value in self.entries.items())
        return "\n".join([HEADER, *lines, ""])

    def merged(self, other: Database) -> Database:
        """Both; entries of `other` win."""
        return Database({**self.entries, **other.entries})

    def find(self, chip: str, kernel: Kernel) -> Schedule | None:
        """The schedule stored for `kernel` on `chip`, else the nearest of its family, in the context in force."""
        text = self.text_for(chip, signature(kernel)) if self.entries else None
        return None if text is None else Schedule.from_attr(ir.Attribute.parse(text))

    def text_for(self, chip: str, key: str) -> str | None:
        """The text of the entry that serves the signature `key` on `chip`."""
        found = self.entries.get((chip, key))
        if found is not None:
            return found
        head, loops = _parts(key)
        near = [(distance, other) for other, sizes in self._families.get((chip, head), ())
                if (distance := _distance(loops, sizes)) is not None]
        return self.entries[chip, min(near)[1]] if near else None

    def number(self, chip: str, key: str, name: str) -> int:
        """The number `name` of the entry that serves `key` on `chip`; 0 when there is none."""
        text = self.text_for(chip, key) if self.entries else None
        found = re.search(rf"\b{name} = (\d+) : i64", text) if text else None
        return int(found[1]) if found else 0

    @cached_property
    def _families(self) -> dict[tuple[str, str], list[tuple[str, tuple[str, ...]]]]:
        """Keys and loops by chip and what a family shares."""
        out: dict[tuple[str, str], list[tuple[str, tuple[str, ...]]]] = {}
        for chip, key in sorted(self.entries):
            head, loops = _parts(key)
            out.setdefault((chip, head), []).append((key, loops))
        return out


def _parts(key: str) -> tuple[str, tuple[str, ...]]:
    """Of a signature what its whole family shares, and the loops."""
    words = key.split()
    family = next((w for w in words if w.startswith("~")), key)
    loops = [w for w in words[2:] if w[0] not in "~#"]
    return " ".join((*words[:2], family)), tuple(part for w in loops for part in (*w.split("x"), "/"))


def _distance(a: tuple[str, ...], b: tuple[str, ...]) -> float | None:
    """How far apart two shapes are; None when one schedule does not serve both."""
    total = 0.0
    if len(a) != len(b):
        return None
    for x, y in zip(a, b, strict=True):
        if x == y:
            continue
        if not (x.isdecimal() and y.isdecimal() and int(x) and int(y)):
            return None
        factor = abs(math.log(int(x) / int(y)))
        if factor > math.log(NEAR):
            return None
        total += factor
    return round(total, 9)


@lru_cache(maxsize=8)
def shipped(target: str) -> Database:
    """The entries that come with xcc."""
    path = file(target, "tuning.txt")
    return Database.read(path) if path is not None else Database()


@lru_cache(maxsize=8)
def _from_file(path: str, _stamp: Any) -> Database:
    return Database.read(path)


def database(target: str, path: str) -> Database:
    """The shipped entries and those of `path`, which win; `path` may be ""."""
    if not path:
        return shipped(target)
    stamp = Path(path).stat().st_mtime_ns if Path(path).is_file() else None
    return shipped(target).merged(_from_file(path, stamp))
