"""The pipeline as a value: text round trip, edits, errors."""

from __future__ import annotations

from typing import ClassVar

import pytest

from xcc._mlir import Module, ir
from xcc.diagnostics import UserError
from xcc.options import CompileOptions
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.pipeline import Pipeline
from xcc.targets.base import get_target, target_names


@register_pass
class Note(Pass):
    """Says its word."""

    name: ClassVar[str] = "test-note"
    word: str = "a"
    sizes: tuple[int, ...] = ()

    def run(self, module: Module, ctx: PassContext) -> None:
        ctx.verbose(self.word)


TEXT = "xt: test-note, test-note{word=b sizes=1,2}; linalg: mlir(func.func(canonicalize, cse)), test-note{word=c}"


def test_round_trip() -> None:
    p = Pipeline.parse(TEXT)
    assert str(p) == TEXT
    assert Pipeline.parse(p.table()) == p
    assert p.names() == ("test-note", "test-note", "mlir(func.func(canonicalize, cse))", "test-note")
    assert p.stage_names() == ("xt", "linalg")
    assert p["xt"].passes[1] == Note("b", (1, 2))


def test_runs_in_order() -> None:
    words: list[str] = []
    with ir.Context():
        module = ir.Module.parse("module {}")
    Pipeline.parse("test-note, test-note{word=z}; later: test-note{word=b}").run(
        module, PassContext(verbose=words.append))
    assert words == ["a", "z", "b"]


def test_edits_are_made_in_place() -> None:
    p = Pipeline.parse(TEXT)
    before = p.copy()
    assert p.replace("linalg/test-note", Note("q")) is p
    assert str(p["linalg"]).endswith("test-note{word=q}")
    p.insert("mlir(cse)", before="linalg/test-note")
    assert str(p["linalg"]).count("mlir") == 2
    p.insert(Note("end"), stage="xt")
    assert p["xt"].passes[-1] == Note("end")
    p.insert(Note("n"), after="mlir(func.func(canonicalize, cse))")
    assert p["linalg"].passes[1] == Note("n")
    p.drop("mlir(cse)")
    assert "mlir(cse)" not in p.names()
    assert str(before) == TEXT


def test_parts() -> None:
    p = Pipeline.parse(TEXT)
    assert p.upto("xt").stage_names() == ("xt",)
    assert p.after("xt").stage_names() == ("linalg",)
    assert p.model_part() == p.upto("xt")
    assert p.kernel_part() == p.after("xt")


@pytest.mark.parametrize(("text", "what"), [
    ("no-such", "there is no pass 'no-such'"),
    ("test-nite", "did you mean test-note"),
    ("test-note{color=red}", "has no option 'color'; it has word, sizes"),
    ("test-note{sizes=x}", "'x' is not of type int"),
    ("a: test-note; a: test-note", "stage 'a' is there twice"),
    ("test-note{word=a", "a bracket is not closed"),
    ("test-note}", "closes nothing"),
])
def test_bad_text(text: str, what: str) -> None:
    with pytest.raises(UserError, match=what.replace("{", "\\{")):
        Pipeline.parse(text)


def test_the_package_has_what_scripts_need() -> None:
    import xcc

    assert xcc.passes.Pipeline is Pipeline
    assert (xcc.passes.Pass, xcc.passes.register_pass) == (Pass, register_pass)


def test_only_passes_are_inserted() -> None:
    with pytest.raises(UserError, match="a pass is a Pass or its text, not a int"):
        get_target("cpu").pipeline(CompileOptions()).insert(3, after="tile")       # type: ignore[arg-type]


def test_a_pass_is_named_after_its_class() -> None:
    @register_pass
    class TestNamedHere(Pass):
        __test__: ClassVar[bool] = False
        often: int = 1

    assert str(Pipeline.parse("test-named-here{often=3}")) == str(TestNamedHere(3)) == "test-named-here{often=3}"


def test_bad_edits() -> None:
    p = Pipeline.parse(TEXT)
    with pytest.raises(UserError, match="3 times"):
        p.drop("test-note")
    with pytest.raises(UserError, match="has no pass 'cse'"):
        p.drop("cse")
    with pytest.raises(UserError, match="there is no stage 'vector'"):
        p.upto("vector")
    with pytest.raises(UserError, match="exactly one"):
        p.insert(Note(), before="mlir", stage="xt")


@pytest.mark.parametrize("target", target_names())
def test_default_pipelines_round_trip(target: str) -> None:
    p = get_target(target).pipeline(CompileOptions(target=target))
    assert Pipeline.parse(str(p)) == p
    assert Pipeline.parse(p.table()) == p
    assert p.stage_names()[:4] == ("xt", "kernels", "linalg", "schedule")
