"""Nothing of a .pt2 file is run."""

from __future__ import annotations

import io
import pickle
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.export import Dim

import xcc
from xcc.diagnostics import UserError
from xcc.frontends.torch.archive import is_size


class Trap:
    """Its pickle makes the file `path` when it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


class Halved(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor([2.0, 3.0]))

    def forward(self, x: Any) -> Any:
        return x[: x.shape[0] // 2] * self.scale


@pytest.fixture
def archive(tmp_path: Path) -> Callable[..., Path]:
    """Writes a program's file, with some records changed."""
    def write(**changes: Callable[[bytes], bytes]) -> Path:
        program = torch.export.export(Halved(), (torch.ones(6, 2),), dynamic_shapes=({0: Dim.AUTO},))
        buffer, path = io.BytesIO(), tmp_path / "m.pt2"
        torch.export.save(program, buffer)
        with zipfile.ZipFile(buffer) as source, zipfile.ZipFile(path, "w") as target:
            for record in source.infolist():
                change = next((c for part, c in changes.items() if part in record.filename), lambda found: found)
                target.writestr(record, change(source.read(record)))
        return path

    return write


def unsafe(trap: Path) -> bytes:
    """What torch.load runs, unless it loads weights only."""
    buffer = io.BytesIO()
    torch.save(Trap(trap), buffer)
    return buffer.getvalue()


def test_example_inputs_are_left_out(archive: Any, tmp_path: Path) -> None:
    path = archive(sample_inputs=lambda _: unsafe(tmp_path / "ran"))
    x = np.ones((4, 2), np.float32)
    np.testing.assert_array_equal(xcc.compile(path)(x), [[2, 3], [2, 3]])
    assert not (tmp_path / "ran").exists()


def replacing(old: str, new: str) -> Callable[[bytes], bytes]:
    """The first text of this form becomes another."""
    def change(found: bytes) -> bytes:
        out, count = re.subn(old.encode(), lambda _: new.encode(), found, count=1)
        assert count
        return out

    return change


@pytest.mark.parametrize(("old", "new", "said"), [
    ('"expr_str": "[^"]*"', "\"expr_str\": \"__import__('pathlib').Path('ran').touch()\"", "is no arithmetic"),
    ('"expr_str": "[^"]*"', '"expr_str": "open(s77)"', "is no arithmetic"),
    ('"name": "mul"', '"name": "m = open(1)"', "is no name")])
def test_sizes_are_arithmetic_and_names_are_names(archive: Any, old: str, new: str, said: str) -> None:
    with pytest.raises(UserError, match=f"m.pt2: .*{said}"):
        xcc.compile(archive(**{"models/model.json": replacing(old, new)}))


@pytest.mark.parametrize(("text", "fine"), [
    ("Mul(Integer(2), Symbol('s0', integer=True))", True), ("s0 + 2*Max(1, s1//2)", True), ("s.x", False),
    ("Symbol('__import__')('os')", False), ("Symbol('a b')", False), ("S('x')", False), ("(lambda: 1)()", False),
    ("Symbol('a', x='b')", False), ("f'{s0}'", False), ("s0 +", False)])
def test_what_a_size_may_be(text: str, fine: bool) -> None:
    assert is_size(text) == fine


def test_tensors_are_no_pickles_of_other_things(archive: Any, tmp_path: Path) -> None:
    path = archive(**{"weights_config": replacing('"use_pickle": false', '"use_pickle": true'),
                      "weights/weight_0": lambda _: unsafe(tmp_path / "ran")})
    with pytest.raises(UserError, match="weight_0: torch's loader of weights takes it for unsafe"):
        xcc.compile(path)
    path = archive(**{"constants_config": lambda _: b'{"config": {"c": {"path_name": "custom_obj_0", '
                      b'"is_param": false, "use_pickle": true, "tensor_meta": null}}}'})
    with zipfile.ZipFile(path, "a") as target:
        root = target.namelist()[0].partition("/")[0]
        target.writestr(f"{root}/data/constants/custom_obj_0", pickle.dumps(Trap(tmp_path / "ran")))
    with pytest.raises(UserError, match="custom_obj_0: it is a Python object"):
        xcc.compile(path)
    assert not (tmp_path / "ran").exists()


DECLARED = """
import sys, torch, xcc
from xcc.frontends.torch.program import captured
text = captured("step.pt2").graph.text()
assert "transformers" not in sys.modules and "transformers.grouped_mm_fallback.default" in text
import transformers.integrations.moe
given = torch.ones(2, 3), torch.ones(2, 3, 4), torch.tensor([1, 2])
assert torch.ops.transformers.grouped_mm_fallback(*given).sum() == 24
"""


def test_ops_of_libraries_that_are_not_loaded(tmp_path: Path) -> None:
    pytest.importorskip("transformers.integrations.moe")

    class Experts(torch.nn.Module):
        def forward(self, *given: Any) -> Any:
            return torch.ops.transformers.grouped_mm_fallback(*given)

    given = torch.ones(2, 3), torch.ones(2, 3, 4), torch.tensor([1, 2])
    torch.export.save(torch.export.export(Experts(), given), tmp_path / "step.pt2")
    subprocess.run([sys.executable, "-c", DECLARED], cwd=tmp_path, check=True)
