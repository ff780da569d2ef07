"""Files in whole blocks, and mapped."""

import os

import numpy as np
import pytest

from xcc.runtime import large_pages
from xcc.runtime.large_pages import BLOCK, OWN, WORTH, BlockWriter, address_of, load_pages, map_file, release, reserve


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


@pytest.mark.parametrize("size", [0, 1, OWN - 1, OWN, BLOCK, BLOCK + 1, BLOCK + WORTH, 5 * BLOCK - 1])
@pytest.mark.parametrize("exact", [False, True])
def test_reserved_memory_holds_its_size(size, exact):
    array, begin = reserve(size, exact=exact)
    assert (address_of(array) + begin) % 64 == 0 and address_of(array) == array.ctypes.data
    part = array[begin:begin + size]
    assert part.size == size
    part.fill(7)
    assert (part == 7).all()


@pytest.mark.skipif(not os.path.exists("/proc/self/smaps"), reason="Linux tells what is resident")
def test_exact_memory_takes_no_more_than_its_pages():
    array, begin = reserve(2 * BLOCK + WORTH, exact=True)
    array[begin:begin + 2 * BLOCK + WORTH].fill(1)
    assert resident(array) <= 2 * BLOCK + WORTH + 4096


def test_where_a_process_can_have_no_more_mappings(monkeypatch):
    def refuse(*_, **__):
        raise OSError("no mapping")

    monkeypatch.setattr(large_pages.mmap, "mmap", refuse)
    array, begin = reserve(BLOCK, exact=True)
    assert array[begin:begin + BLOCK].size == BLOCK and (array.ctypes.data + begin) % 64 == 0


def test_more_memory_than_there_is():
    for size in (1 << 60, 1 << 70):
        with pytest.raises(MemoryError):
            reserve(size, exact=False)


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


@pytest.mark.skipif(not os.path.exists("/proc/self/smaps"), reason="Linux tells what is resident")
def test_pages_are_loaded_again(tmp_path):
    (tmp_path / "f").write_bytes(bytes(1 << 20))
    data = map_file(tmp_path / "f")
    release(data)
    assert resident(data) < 100_000
    load_pages(data[5000:600_000])
    assert resident(data) >= 590_000
    load_pages(data[:0])
    load_pages(np.arange(10))
