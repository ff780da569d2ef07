"""Files in whole blocks, and mapped."""

import numpy as np
import pytest

from xcc.runtime import large_pages
from xcc.runtime.large_pages import BlockWriter, map_file


class Recorder:
    """A file that takes at most so many bytes a call."""

    def __init__(self, most=1 << 60):
        self.most, self.parts = most, []

    def write(self, view):
        self.parts.append(bytes(view[:self.most]))
        return len(self.parts[-1])


@pytest.mark.parametrize("sizes", [(3,), (8,), (5, 5, 5), (20,), (1, 30, 2), (7, 1, 16, 9), (0, 4, 0)])
def test_writes_are_whole_blocks(monkeypatch, sizes):
    monkeypatch.setattr(large_pages, "BLOCK", 8)
    file = Recorder()
    writer = BlockWriter(file)
    text = bytes(range(sum(sizes)))
    at = 0
    for n in sizes:
        writer.write(np.frombuffer(text[at:at + n], np.uint8))
        at += n
        assert writer.tell() == at
    assert all(len(p) % 8 == 0 for p in file.parts)
    writer.flush()
    assert b"".join(file.parts) == text


def test_short_writes_go_on():
    file = Recorder(most=3)
    writer = BlockWriter(file)
    writer.write(b"0123456789")
    writer.flush()
    assert b"".join(file.parts) == b"0123456789"


def test_mapped(tmp_path):
    (tmp_path / "f").write_bytes(b"abc")
    data = map_file(tmp_path / "f")
    assert bytes(data) == b"abc" and not data.flags.writeable
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(ValueError, match="empty"):
        map_file(tmp_path / "empty")
    with pytest.raises(FileNotFoundError):
        map_file(tmp_path / "none")
