"""What the samples of torch's operator tests came to, as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from xcc.frontends.torch.op_table import core

DOCUMENT = Path(__file__).parents[2] / "docs" / "torch-coverage.md"
EXPECTED = Path(__file__).with_name("torch_expected_failures.txt")

HEADER = """# PyTorch operators

Written by `make conformance-torch`: the samples of torch's own operator tests (`op_db`, torch 2.13, element types f32,
i64 and bool), traced to core ATen, imported, and evaluated by the xt dialect's own semantics, against eager.

A sample counts when torch can trace it, when it is dense, real and deterministic, and when its trace has only ops that
are core ATen or kept whole. *Left out* says why the others do not count. Samples that fail are listed with reasons in
`test/e2e/torch_expected_failures.txt`.

"""


class Row(NamedTuple):
    """A sample; `beyond` are its ops that are neither core nor kept, `failure` is "" for one that is right."""

    number: int
    left_out: str
    beyond: str
    failure: str

    @property
    def counts(self) -> bool:
        return not self.left_out and not self.beyond


class Results(NamedTuple):
    op: str
    dtype: str
    rows: list[Row]


def expected_failures() -> dict[tuple[str, str, int], str]:
    """(op, element type, number) -> reason. A line is ``op dtype numbers reason``, numbers as ``0,3-5``."""
    out = {}
    for line in EXPECTED.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        op, dtype, numbers, reason = line.split(maxsplit=3)
        for part in numbers.split(","):
            first, _, last = part.partition("-")
            out |= {(op, dtype, n): reason for n in range(int(first), int(last or first) + 1)}
    return out


def is_expected(failure: str, listed: str | None) -> bool:
    """Whether a sample may end with `failure`, "" for none, that is `listed` with this reason."""
    return bool(failure) == (listed is not None) or (listed or "").startswith("may fail")


def family(op: str) -> str:
    """The families that the summary counts by."""
    if op in core():
        return "core ATen's own"
    head = op.split(".")[0]
    if op.startswith("nn.functional"):
        return "nn.functional"
    return head if head in ("linalg", "fft", "special", "masked", "signal", "_refs") else "others"


class Report:
    def __init__(self, results: list[Results], expected: dict[tuple[str, str, int], str]) -> None:
        self.results = results
        self.expected = expected

    def summary(self, types: bool = False) -> str:
        """A table of families, and of element types."""
        counts: Counter[tuple[str, str]] = Counter()
        for r in self.results:
            for name in (family(r.op), *([f"type {r.dtype}"] if types else []), "all"):
                counts[name, "samples"] += len(r.rows)
                counts[name, "counted"] += sum(row.counts for row in r.rows)
                counts[name, "passed"] += sum(row.counts and not row.failure for row in r.rows)
        lines = ["| family | samples | counted | passed | |", "|---|---|---|---|---|"]
        for name in sorted({n for n, _ in counts}, key=lambda n: (n == "all", n.startswith("type "), n)):
            total, counted, passed = (counts[name, what] for what in ("samples", "counted", "passed"))
            share = f"{100 * passed / counted:.1f}%" if counted else ""
            lines.append(f"| {name} | {total} | {counted} | {passed} | {share} |".replace("|  |", "| |"))
        return "\n".join(lines)

    def document(self) -> str:
        lines = ["| op | samples | counted | passed | left out, failing |", "|---|---|---|---|---|"]
        by_op: dict[str, list[Row]] = {}
        for r in self.results:
            by_op.setdefault(r.op, []).extend(r.rows)
        for op, rows in sorted(by_op.items()):
            counted = [row for row in rows if row.counts]
            passed = sum(not row.failure for row in counted)
            lines.append(f"| {op} | {len(rows)} | {len(counted)} | {passed} | {'; '.join(_reasons(op, rows))} |")
        return HEADER + self.summary() + "\n\n" + "\n".join(line.replace("|  |", "| |") for line in lines) + "\n"

    def section(self, title: str, types: bool = False) -> None:
        """Makes the summary a section of docs/torch-coverage.md; one of that title goes."""
        text = DOCUMENT.read_text()
        before, _, rest = text.partition(f"## {title}\n")
        _, mark, after = rest.partition("## ")
        after = f"\n{mark}{after}" if mark else ""
        DOCUMENT.write_text(f"{before.rstrip()}\n\n## {title}\n{self.summary(types)}\n{after}")

    def write(self) -> None:
        """Writes the document; its sections stay."""
        _, mark, sections = DOCUMENT.read_text().partition("## ")
        DOCUMENT.write_text(self.document() + (f"\n{mark}{sections}" if mark else ""))

    def unexpected(self) -> list[str]:
        """Samples that fail and are not listed, and listed ones that pass or do not count."""
        out = []
        for r in self.results:
            for row in r.rows:
                if not is_expected(row.failure, self.expected.get((r.op, r.dtype, row.number))):
                    what = "fails, but is not listed" if row.failure else "does not fail, but is listed: delete it"
                    out.append(f"{r.op} {r.dtype} {row.number} {what}")
        return out


def _reasons(op: str, rows: list[Row]) -> Iterator[str]:
    left = Counter(row.left_out or f"has {row.beyond.replace('.default', '')}" for row in rows if not row.counts)
    yield from (f"{n}: {reason}" for reason, n in left.most_common())
    failing = sum(bool(row.failure) for row in rows)
    if failing:
        yield f"{failing}: fails"
