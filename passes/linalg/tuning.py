"""The tuning database: schedules found by measurement, for `configure` to read before it asks the strategy.

A text file, one entry a line, sorted, so that files merge line by line::

    znver5 | contraction f32 56x56x64 r 3x3x64 #1f0c2d9a | {block = array<i64: ...>, ...}

The first field is the chip, the second the kernel's signature, the third the value of ``xcc.config``. Everything that
decides the schedule is in the signature, nothing else, so a lookup is deterministic.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from xcc._mlir import ir
from xcc.diagnostics import UserError
from xcc.passes.linalg.kernel import Kernel, Op
from xcc.passes.linalg.schedule import Schedule

__all__ = ["Database", "database", "shipped", "signature"]

SEPARATOR = " | "
HEADER = "# xcc tuning database: chip | kernel | xcc.config"


def signature(kernel: Kernel) -> str:
    """What a schedule depends on: the main op's loops in the open, the whole structure as a hash."""
    from xcc.passes.linalg.domain import contraction_of

    op = contraction_of(kernel) or next((o for o in kernel.ops if o.is_reduction), None)
    kind = "contraction" if contraction_of(kernel) else "reduction" if op else "pointwise"
    if op is None:
        loops = "x".join(str(d) for d in kernel.results[0].dims) or "scalar"
    else:
        parallel = [str(d) for d, r in zip(op.loops, op.reduction, strict=True) if not r and d != 1]
        reduced = [str(d) for d, r in zip(op.loops, op.reduction, strict=True) if r]
        loops = f"{'x'.join(parallel) or 'scalar'} r {'x'.join(reduced)}"
    digest = hashlib.blake2b("\n".join(_structure(kernel)).encode(), digest_size=6).hexdigest()
    return f"{kind} {kernel.results[0].element} {loops} #{digest}"


def _structure(kernel: Kernel) -> Iterable[str]:
    names = {t: f"a{n}" for n, t in enumerate(kernel.args)}
    for t in kernel.args:
        yield f"{t.dims} {t.element}"
    for n, op in enumerate(kernel.ops):
        for t in op.results:
            names[t] = f"v{n}.{t.index}"
        reads = [f"{names.get(t, str(t.constant))}{[str(e) for e in a]}" for t, a in op.inputs]
        outs = [[str(e) for e in a] for a in op.outs]
        yield f"{[str(d) for d in op.loops]} {op.reduction} {reads} {outs} {_body(op)}"
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
        """The schedule stored for `kernel` on `chip`, in the context in force."""
        text = self.entries.get((chip, signature(kernel))) if self.entries else None
        return None if text is None else Schedule.from_attr(ir.Attribute.parse(text))


@lru_cache(maxsize=8)
def shipped(target: str) -> Database:
    """The entries that come with xcc."""
    import xcc.targets

    for root in xcc.targets.__path__:
        path = Path(root, target, "tuning.txt")
        if path.is_file():
            return Database.read(path)
    return Database()


@lru_cache(maxsize=8)
def _from_file(path: str, _stamp: Any) -> Database:
    return Database.read(path)


def database(target: str, path: str) -> Database:
    """The shipped entries and those of `path`, which win; `path` may be ""."""
    if not path:
        return shipped(target)
    stamp = Path(path).stat().st_mtime_ns if Path(path).is_file() else None
    return shipped(target).merged(_from_file(path, stamp))
