"""The .xcm file: round trip, memory mapping, and every kind of damage as a UserError."""

from __future__ import annotations

import hashlib
import json
import os
import random
import struct
import threading
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from xcc import symbolic
from xcc.diagnostics import UserError
from xcc.runtime.artifact import ALIGN, FORMAT_VERSION, Artifact
from xcc.runtime.program import Buffer, Launch, Program

N = symbolic.sym("n")


def make(**manifest: Any) -> Artifact:
    program = Program(
        buffers=(Buffer("input", (N, 3), "f32", "x"), Buffer("weight", (3,), "f32", "w"),
                 Buffer("weight", (5,), "f16", "odd"), Buffer("output", (N, 3), "f32", "y")),
        body=(Launch("k", (0, 1, 3), (N,)),), inputs=(0,), outputs=(3,), symbols=("n",), bounds={"n": (1, 64)})
    weights = {"w": np.arange(3, dtype=np.float32), "odd": np.ones(5, np.float16)}
    head = {"format": FORMAT_VERSION, "target": "cpu", "chip": "x86-64-v3", **manifest}
    return Artifact(head, program, {"kernels/host.so": b"\x7fELF", "ir/k.mlir": b"module {}"}, weights)


def test_round_trip_and_mapping(tmp_path: Path) -> None:
    path = tmp_path / "m.xcm"
    a = make()
    size = a.save(path)
    assert size == path.stat().st_size
    b = Artifact.read(path)
    assert b.program == a.program
    assert bytes(b.members["kernels/host.so"]) == b"\x7fELF"
    assert b.manifest["chip"] == "x86-64-v3"
    for name, value in a.weights.items():
        np.testing.assert_array_equal(b.weights[name], value)
        assert not b.weights[name].flags.owndata
        assert b.weights[name].__array_interface__["data"][0] % ALIGN == 0
    with pytest.raises(ValueError, match="read-only"):
        b.weights["w"][0] = 1


def test_devices_pipes_and_links_stay(tmp_path: Path) -> None:
    make().save(tmp_path / "m.xcm")
    (tmp_path / "link.xcm").symlink_to(tmp_path / "m.xcm")
    (tmp_path / "m.xcm").unlink()
    make().save(tmp_path / "link.xcm")
    assert (tmp_path / "link.xcm").is_symlink()
    whole = (tmp_path / "m.xcm").read_bytes()
    os.mkfifo(tmp_path / "pipe")
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    make().save(tmp_path / "pipe")
    reader.join(10)
    assert read == [whole]
    assert (tmp_path / "pipe").is_fifo()
    if Path("/dev/full").is_char_device():
        os.symlink("/dev/full", tmp_path / "full")
        with pytest.raises(UserError, match="full: cannot be written: No space left on device"):
            make().save(tmp_path / "full")
        assert Path("/dev/full").is_char_device()
    assert not list(tmp_path.glob("*.tmp"))


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    for path, what in ((tmp_path, "Is a directory"), (tmp_path / "absent" / "m.xcm", "No such file")):
        with pytest.raises(UserError, match=what):
            make().save(path)
    with pytest.raises(TypeError):
        make().save(None)                                       # type: ignore[arg-type]
    with pytest.raises(UserError, match="null byte"):
        Artifact.read("a\0")
    assert not list(tmp_path.iterdir())


def test_is_a_plain_zip_and_deterministic(tmp_path: Path) -> None:
    one, two = tmp_path / "1.xcm", tmp_path / "2.xcm"
    make().save(one)
    make().save(two)
    assert one.read_bytes() == two.read_bytes()
    with zipfile.ZipFile(one) as z:
        assert z.testzip() is None
        assert json.loads(z.read("manifest.json"))["target"] == "cpu"
    from safetensors.numpy import load_file

    with zipfile.ZipFile(one) as z:
        (tmp_path / "w.safetensors").write_bytes(z.read("weights.safetensors"))
    np.testing.assert_array_equal(load_file(tmp_path / "w.safetensors")["w"], np.arange(3, dtype=np.float32))


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.xcm"
    make().save(path)
    data = path.read_bytes()
    for size in [0, 1, 21, 22, 100, *range(200, len(data), 97), len(data) - 1]:
        path.write_bytes(data[:size])
        with pytest.raises(UserError, match=r"m\.xcm: "):
            Artifact.read(path)


def test_bit_flips_never_crash_and_never_change_data(tmp_path: Path) -> None:
    path = tmp_path / "m.xcm"
    good = make()
    good.save(path)
    data = bytearray(path.read_bytes())
    rng = random.Random(7)
    refused = 0
    for _ in range(800):
        at, bit = rng.randrange(len(data)), 1 << rng.randrange(8)
        data[at] ^= bit
        path.write_bytes(data)
        data[at] ^= bit
        try:
            read = Artifact.read(path)
        except UserError as e:
            refused += 1
            assert str(e).isprintable()
            continue
        assert read.program == good.program            # padding or a date: what counts is unharmed
        np.testing.assert_array_equal(read.weights["w"], good.weights["w"])
        assert {k: bytes(v) for k, v in read.members.items()} == good.members
    assert refused > 400


def _zip(path: Path, members: dict[str, bytes]) -> None:
    from xcc.runtime.artifact import _Writer

    with open(path, "wb") as f:
        writer = _Writer(f)
        for name, data in members.items():
            writer.add(name, [data])
        writer.finish()


@pytest.mark.parametrize("name", ["../evil", "/etc/passwd", "a/../../b", "C:\\x", "a//b", ""])
def test_path_escapes(tmp_path: Path, name: str) -> None:
    path = tmp_path / "m.xcm"
    _zip(path, {name: b"x"})
    with pytest.raises(UserError, match="not a plain path inside the archive"):
        Artifact.read(path)


@pytest.mark.parametrize(("change", "what"), [
    ({"format": 99}, f"format version 99; this xcc reads {FORMAT_VERSION}"),
    ({"format": "1"}, "no format version"),
    ({"chip": None}, "has no chip"),
])
def test_bad_manifest(tmp_path: Path, change: dict[str, Any], what: str) -> None:
    path = tmp_path / "m.xcm"
    make(**change).save(path)
    with pytest.raises(UserError, match=what):
        Artifact.read(path)


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.xcm"
    with pytest.raises(UserError, match="No such file"):
        Artifact.read(path)
    path.write_bytes(b"hello, this is just some text that is long enough")
    with pytest.raises(UserError, match="not a compiled model"):
        Artifact.read(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("manifest.json", "{}" * 100)
    with pytest.raises(UserError, match="damaged"):
        Artifact.read(path)
    with pytest.raises(UserError, match="Is a directory"):
        Artifact.read(tmp_path)


def _with(path: Path, changed: dict[str, bytes | None], forged: bool = False) -> Path:
    """An artifact with other members (None: without) and right CRCs; `forged` writes their hashes too."""
    make().save(path)
    with zipfile.ZipFile(path) as z:
        members = {n: z.read(n) for n in z.namelist()} | changed
    members = {name: data for name, data in members.items() if data is not None}
    if forged:
        manifest = json.loads(members["manifest.json"])
        manifest["sha256"] = {n: hashlib.sha256(members[n]).hexdigest() for n in manifest["sha256"]}
        members["manifest.json"] = json.dumps(manifest).encode()
    _zip(path, members)
    return path


def _with_program(tmp_path: Path, program: Any) -> Path:
    return _with(tmp_path / "m.xcm", {"program.json": json.dumps(program).encode()}, forged=True)


@pytest.mark.parametrize(("changed", "what"), [
    ({"kernels/host.so": b"\x7fELG"}, "'kernels/host.so' is not what manifest.json says"),
    ({"program.json": b"{}"}, "'program.json' is not what manifest.json says"),
    ({"kernels/host.so": None}, "'kernels/host.so' is not in the file"),
    ({"kernels/more.so": b"x"}, "'kernels/more.so' is not listed in manifest.json"),
    ({"manifest.json": json.dumps({"format": FORMAT_VERSION, "target": "cpu", "chip": "c"}).encode()}, "no sha256"),
    ({"manifest.json": json.dumps({"format": FORMAT_VERSION, "target": "cpu", "chip": "c", "sha256": [1]}).encode()},
     "no sha256"),
])
def test_members_are_what_was_written(tmp_path: Path, changed: dict[str, bytes | None], what: str) -> None:
    with pytest.raises(UserError, match=what):
        Artifact.read(_with(tmp_path / "m.xcm", changed))


def test_code_that_was_changed_is_never_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from xcc.runtime import cpu, model

    loaded: list[bytes] = []
    monkeypatch.setattr(cpu, "load_library", loaded.append)
    with pytest.raises(UserError, match="SHA-256 differs"):
        model.load(_with(tmp_path / "m.xcm", {"kernels/host.so": b"\x7fELF" * 100}))
    assert not loaded


def test_bad_programs(tmp_path: Path) -> None:
    for program in ([], {"buffers": 3}, {"buffers": [], "body": [{"op": "Exec"}], "inputs": [0], "outputs": []},
                    {"buffers": [], "body": [], "inputs": [4], "outputs": []}):
        with pytest.raises(UserError, match=r"m\.xcm: program\.json"):
            Artifact.read(_with_program(tmp_path, program))
    deep = json.dumps([1])
    path = tmp_path / "m.xcm"
    _zip(path, {"manifest.json": b"[" * 100_000, "program.json": deep.encode(), "weights.safetensors": b""})
    with pytest.raises(UserError, match=r"manifest\.json"):
        Artifact.read(path)


def test_missing_weight(tmp_path: Path) -> None:
    a = make()
    a.weights = {"w": a.weights["w"]}
    a.save(tmp_path / "m.xcm")
    with pytest.raises(UserError, match="uses weight 'odd'"):
        Artifact.read(tmp_path / "m.xcm")


def test_bad_safetensors_headers() -> None:
    from xcc.weight_files import parse_header

    def header(text: bytes, body: bytes = b"") -> bytes:
        return struct.pack("<Q", len(text)) + text + body

    good = b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    assert list(parse_header(header(good, b"1234"), "f")) == ["a"]
    for bad in (b"", b"\xff" * 20, header(b"[]"), header(good), header(b'{"a":1}'),
                header(good.replace(b"F32", b"Q32"), b"1234"), header(good.replace(b"[1]", b"[-1]"), b"1234"),
                header(good.replace(b"[0,4]", b"[4,0]"), b"1234"), header(good.replace(b"[1]", b'["1"]'), b"1234"),
                header(good.replace(b"[1]", b"[99999999999,99999999999]"), b"1234")):
        with pytest.raises(UserError):
            parse_header(bad, "f")
