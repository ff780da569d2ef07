"""Files in whole blocks, and mapped."""

import os

import numpy as np
import pytest

from xcc.runtime import large_pages
from xcc.runtime.large_pages import BlockWriter, map_file, release


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


def resident(array):
    """Bytes of the file that holds `array` which are in this process's memory."""
    address, found = array.ctypes.data, False
    for line in open("/proc/self/smaps"):
        if "-" in line.split()[0]:
            begin, end = (int(part, 16) for part in line.split()[0].split("-"))
            found = begin <= address < end
        elif found and line.startswith("Rss:"):
            return 1024 * int(line.split()[1])
    raise AssertionError("not mapped")


@pytest.mark.skipif(not os.path.exists("/proc/self/smaps"), reason="Linux tells what is resident")
def test_released(tmp_path):
    """The pages go, the numbers are still there; arrays that no file holds are left as they are."""
    (tmp_path / "f").write_bytes(bytes(range(256)) * (1 << 12))
    data = map_file(tmp_path / "f")
    part = data[5000:900_000].view(np.uint8)
    total = int(data.sum(dtype=np.int64))
    assert resident(part) >= part.nbytes - 4096
    release(part)
    assert resident(part) < 300_000
    assert int(data.sum(dtype=np.int64)) == total
    own = np.arange(100_000)
    release(own[10:])
    np.testing.assert_array_equal(own, np.arange(100_000))
