"""Artifacts whose sizes and offsets do not fit into 32 bits (zip64)."""

from __future__ import annotations

import hashlib
import json
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_artifact import make

from xcc.diagnostics import UserError
from xcc.runtime import artifact
from xcc.runtime.artifact import Artifact
from xcc.runtime.program import Buffer, Program


def test_zip64(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes and offsets that count as too large for 32 bits."""
    path, good = tmp_path / "m.xcm", make()
    good.save(path)
    plain = path.stat().st_size
    monkeypatch.setattr(artifact, "_MAX32", 700)
    assert good.save(path) > plain
    read = Artifact.read(path)
    assert read.program == good.program and {k: bytes(v) for k, v in read.members.items()} == good.members
    np.testing.assert_array_equal(read.weights["w"], good.weights["w"])
    data = path.read_bytes()
    for size in (len(data) - 1, len(data) - 60, len(data) - 100):
        path.write_bytes(data[:size])
        with pytest.raises(UserError, match=r"m\.xcm: "):
            Artifact.read(path)


class Sparse:
    """A file that skips zeros in place of writing them."""

    def __init__(self, file: Any) -> None:
        self.file, self.tell = file, file.tell

    def write(self, data: Any) -> None:
        if len(data) >= 1 << 20 and not any(data[:64]):
            self.file.seek(len(data), 1)
        else:
            self.file.write(data)


@pytest.mark.slow
def test_more_than_4_gib(tmp_path: Path) -> None:
    path = tmp_path / "m.xcm"
    make().save(path)
    with zipfile.ZipFile(path) as z:
        members = {n: z.read(n) for n in z.namelist()}
    zeros, count = memoryview(bytes(1 << 24)), (1 << 32 >> 24) + 1
    text = json.dumps({"big": {"dtype": "U8", "shape": [count << 24], "data_offsets": [0, count << 24]}}).encode()
    text += b" " * (-len(text) % 8)
    program = Program((Buffer("weight", (count << 24,), "ui8", "big"), Buffer("output", (), "f32", "y")), (), (), (1,))
    code = json.dumps(artifact.to_json(program)).encode()
    head = struct.pack("<Q", len(text)) + text
    manifest = json.loads(members["manifest.json"]) | {"weights_sum": artifact._sum(head)}
    manifest["sha256"]["program.json"] = hashlib.sha256(code).hexdigest()
    with open(path, "wb") as f:
        writer = artifact._Writer(Sparse(f))
        writer.add("weights.safetensors", [head, *[zeros] * count])
        for name, data in (members | {"manifest.json": json.dumps(manifest).encode(), "program.json": code}).items():
            if name != "weights.safetensors":
                writer.add(name, [data])
        writer.finish()
    read = Artifact.read(path)
    assert read.weights["big"].size == count << 24 and bytes(read.members["kernels/host.so"]) == b"\x7fELF"
    with zipfile.ZipFile(path) as z:
        assert z.read("kernels/host.so") == b"\x7fELF"
    path.unlink()
