"""The cache of finished artifacts: what it finds, what it must not find, damage, limits."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import xcc
from xcc import facade
from xcc.cache import cache, model_cache
from xcc.options import CompileOptions
from xcc.tools import xcc_cli


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XCC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("xcc.process.fork_guard.fork_guard", lambda: lambda _step: None)  # tests are not a command


def save_model(path: Path, factor: float = 2.0) -> Path:
    """y = x * w, w external."""
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "w"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ("n", 300))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ("n", 300))],
        [numpy_helper.from_array(np.full(300, factor, np.float32), "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    Path(f"{path}.data").unlink(missing_ok=True)        # onnx would append
    onnx.save(model, str(path), save_as_external_data=True, location=f"{path.name}.data", size_threshold=0)
    time.sleep(0.03)        # files that are newer than their compilation are not kept
    return path


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return save_model(tmp_path / "m.onnx")


def command(model: Path, *flags: str) -> int:
    return xcc_cli.main([str(model), "-o", str(model.with_suffix(".xcm")), *flags])


def entries() -> list[Path]:
    return sorted((cache.folder() / "models").rglob("*.xcm"))


def value(path: Path) -> float:
    return float(xcc.load(path.with_suffix(".xcm"))(np.ones((1, 300), np.float32))[0, 7])


def test_a_second_compilation_is_a_copy(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(model) == 0
    first = model.with_suffix(".xcm").read_bytes()
    assert "from the cache" not in capsys.readouterr().err
    model.with_suffix(".xcm").unlink()
    assert command(model) == 0
    assert " 1 kernel," in (said := capsys.readouterr().err) and "from the cache" in said
    assert model.with_suffix(".xcm").read_bytes() == first
    assert command(model, "--no-cache") == 0
    assert "from the cache" not in capsys.readouterr().err


def test_python_and_the_command_share_it(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = xcc.compile(model)
    assert len(entries()) == 1
    again = xcc.compile(str(model))
    x = np.arange(600, dtype=np.float32).reshape(2, 300)
    np.testing.assert_array_equal(made(x), 2 * x)
    np.testing.assert_array_equal(again(x), 2 * x)
    assert command(model) == 0
    assert "from the cache" in capsys.readouterr().err
    entries()[0].unlink()                   # what is mapped stays
    np.testing.assert_array_equal(again(x), 2 * x)


@pytest.mark.parametrize("flags", [("--dim=n=1..64",), ("--chip=x86-64-v3",), ("--threads=1",), ("--keep-ir",),
                                   ("--no-winograd",), ("--precision=bf16",), ('--fix=x=[[1]]',)])
def test_other_options_are_other_entries(model: Path, flags: tuple[str, ...]) -> None:
    options = xcc_cli._options(xcc_cli.parser().parse_args([str(model)]))
    others = xcc_cli._options(xcc_cli.parser().parse_args([str(model), *flags]))
    tickets = [model_cache.ticket(model, o) for o in (options, others)]
    assert tickets[0] is not None and tickets[1] is not None
    assert tickets[0].key != tickets[1].key


def test_the_tuning_database_counts_by_content(model: Path, tmp_path: Path) -> None:
    keys = []
    for text in ("# xcc tuning 1\n", "# xcc tuning 2\n"):
        (tmp_path / "db.txt").write_text(text)
        keys.append(model_cache.ticket(model, CompileOptions(tuning=str(tmp_path / "db.txt"))))
    assert keys[0] is not None and keys[1] is not None
    assert keys[0].key != keys[1].key


@pytest.mark.parametrize("options", [{"verbose": 1}, {"dump_stages": "d"}, {"debug_patterns": True},
                                     {"verify": "each"}, {"cache": False}])
def test_compilations_that_say_or_write_more_are_made(model: Path, options: dict[str, Any]) -> None:
    assert model_cache.ticket(model, CompileOptions(**options)) is None
    assert model_cache.ticket(model, CompileOptions(), plugins=("p.py",)) is None


def test_two_that_compile_the_same_share_one_compilation(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compilations: list[Path] = []
    begun, looked = threading.Event(), threading.Event()
    apart, find = facade.compile_apart, model_cache.Ticket.find

    def compiled(*arguments: Any) -> Any:
        compilations.append(arguments[-1])
        begun.set()
        looked.wait(60)
        return apart(*arguments)

    def found(entry: model_cache.Ticket) -> Any:
        if begun.is_set():
            looked.set()
        return find(entry)

    monkeypatch.setattr(facade, "compile_apart", compiled)
    monkeypatch.setattr(model_cache.Ticket, "find", found)
    first = threading.Thread(target=xcc.compile, args=(model,))
    first.start()
    assert begun.wait(60)
    second = xcc.compile(model)
    first.join()
    x = np.arange(600, dtype=np.float32).reshape(2, 300)
    np.testing.assert_array_equal(second(x), 2 * x)
    assert len(compilations) == 1
    assert not list(cache.folder().rglob("*.lock"))


def test_changed_weights_are_another_model(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(model) == 0
    assert value(model) == 2
    stamp = Path(f"{model}.data").stat()
    save_model(model, 3.0)
    os.utime(f"{model}.data", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    capsys.readouterr()
    assert command(model) == 0
    assert "from the cache" not in capsys.readouterr().err
    assert value(model) == 3
    save_model(model, 2.0)
    assert command(model) == 0
    assert "from the cache" in capsys.readouterr().err
    assert value(model) == 2
    Path(f"{model}.data").unlink()
    assert command(model) == 1


def test_files_that_change_meanwhile_are_not_kept(model: Path) -> None:
    entry = model_cache.ticket(model, CompileOptions())
    assert entry is not None
    assert command(model, "--no-cache") == 0
    assert entry.store(model.with_suffix(".xcm"), [Path(f"{model}.data")], {"chip": "c", "kernels": 1}) is not None
    save_model(model)
    assert entry.store(model.with_suffix(".xcm"), [Path(f"{model}.data")], {"chip": "c", "kernels": 1}) is None


def damage(path: Path, how: str) -> None:
    data = bytearray(path.read_bytes())
    if how == "flip":
        data[len(data) // 2] ^= 4
    path.write_bytes(data[:-5] if how == "cut" else data)


@pytest.mark.parametrize("how", ["flip", "cut"])
@pytest.mark.parametrize("suffix", [".xcm", ".json", ".list"])
def test_damage_is_found_and_mended(model: Path, capsys: pytest.CaptureFixture[str], how: str, suffix: str) -> None:
    assert command(model) == 0
    (path,) = (cache.folder() / "models").rglob(f"*{suffix}")
    damage(path, how)
    capsys.readouterr()
    for _ in range(2):
        assert command(model) == 0
        assert value(model) == 2
    assert "from the cache" in capsys.readouterr().err.splitlines()[-1]
    damage(entries()[0], how)
    assert xcc.compile(model)(np.ones((1, 300), np.float32))[0, 7] == 2


def test_the_limit_holds_for_artifacts_too(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert command(model) == 0
    size = entries()[0].stat().st_size
    monkeypatch.setenv("XCC_CACHE_BYTES", str(2 * size))
    assert command(model, "--threads=1") == 0
    assert len(entries()) == 1              # it would take over a quarter
    monkeypatch.setenv("XCC_CACHE_BYTES", "0")
    cache.trim()
    assert not entries()
    assert command(model) == 0


def test_many_at_once(model: Path) -> None:
    def one(_: int) -> float:
        return float(xcc.compile(model)(np.ones((1, 300), np.float32))[0, 7])

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(one, range(6))) == [2.0] * 6
    assert len(entries()) == 1
    assert not list((cache.folder() / "models").rglob("*.tmp"))


def test_a_folder_that_cannot_be_written_is_no_error(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XCC_CACHE_DIR", str(model))     # a file
    assert command(model) == 0
    assert value(model) == 2
    assert xcc.compile(model)(np.ones((1, 300), np.float32))[0, 7] == 2


def test_a_large_file_is_hashed_in_chunks(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(bytes(model_cache.CHUNK * 2 + 5))
    before = model_cache._digest(path)
    data = bytearray(path.read_bytes())
    data[-1] = 1
    path.write_bytes(data)
    assert model_cache._digest(path) != before
