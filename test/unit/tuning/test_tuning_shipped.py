"""The databases that come with xcc: their form, and that programs find what was measured for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from xcc._mlir import ir
from xcc.compiler import compile_model
from xcc.context import new_context
from xcc.options import CompileOptions
from xcc.passes.linalg.schedule.schedule import Schedule
from xcc.passes.linalg.schedule.tuning import Database, shipped
from xcc.targets.base import get_target

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted(ROOT.glob("targets/*/tuning.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.parent.name)
def test_the_file_is_sorted_and_its_schedules_are_of_known_chips(path: Path) -> None:
    database = shipped(path.parent.name)
    assert database.entries and database.text() == path.read_text()
    chips = get_target(path.parent.name).chips()
    with new_context():
        for (chip, key), text in database.entries.items():
            assert chip in chips, key
            if not key.startswith("product "):
                assert Schedule.from_attr(ir.Attribute.parse(text))


PRODUCT = """
func.func @main(%x: tensor<{m}x{k}x{t}> {{xt.name = "x"}}, %w: tensor<{w}x{t}> {{xt.name = "w"}})
    -> (tensor<{m}x{n}x{t}> {{xt.name = "y"}}) {{
  %0 = "xt.dot_general"(%x, %w) {{dtype = "{t}", lhs_batch = [], rhs_batch = [],
    lhs_contract = [1], rhs_contract = [{d}]}}
    : (tensor<{m}x{k}x{t}>, tensor<{w}x{t}>) -> tensor<{m}x{n}x{t}>
  return %0 : tensor<{m}x{n}x{t}>
}}
"""


@pytest.mark.parametrize(("m", "n", "k", "dtype", "order"), [
    (333, 777, 1111, "f16", "nt"), (512, 12288, 4096, "f16", "nt"), (512, 22016, 4096, "f16", "nt"),
    (512, 4096, 11008, "f16", "nt"), (4096, 4096, 4096, "f32", "nn")])
def test_products_find_what_was_measured_for_them(m: int, n: int, k: int, dtype: str, order: str, tmp_path: Path,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry of which nothing is found any more, as the kernel has changed, is an error here."""
    found: list[str] = []
    look_up = Database.text_for

    def watched(self: Database, chip: str, key: str) -> str | None:
        if (chip, key) in self.entries:
            found.append(key)
        return look_up(self, chip, key)

    monkeypatch.setattr(Database, "text_for", watched)
    path = tmp_path / "product.mlir"
    right = f"{n}x{k}" if order == "nt" else f"{k}x{n}"
    path.write_text(PRODUCT.format(m=m, n=n, k=k, t=dtype, w=right, d=int(order == "nt")))
    compile_model(str(path), CompileOptions(target="nvptx", chip="sm_90a", jobs=1, isolate=False, cache=False))
    assert len(found) == 1
