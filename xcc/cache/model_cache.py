"""Finished artifacts on disk, by the hash of everything that decides them: a second compilation is a look-up.

The key is made of the bytes of the model file and of its external data, the options, the chip, and the compiler. The
model file and the rest name a *list* (which external files the model reads); the list and the bytes of those files name
the artifact. Found before MLIR, onnx or numpy is imported.

Folder ``models`` of xcc's folder: ``<hash>.list``, and ``<hash>.xcm`` with its facts in ``<hash>.json``. The latter has
the artifact's size and CRC-32, checked while it is copied; what does not fit is removed and compiled again. Kernels
and artifacts share the size that :mod:`xcc.cache.cache` keeps to.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import hashlib
import json
import mmap
import os
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xcc.cache import cache
from xcc.frontends.torch.program import TorchProgram
from xcc.options import CompileOptions
from xcc.runtime.output_file import output_file

__all__ = ["Found", "Ticket", "temporary", "ticket"]

CHUNK = 4 << 20
NEUTRAL = ("jobs", "isolate", "cache", "verbose", "dump_stages", "debug_patterns", "verify", "tuning", "chip")
"""Options that do not change the artifact; the tuning database's text and the chips are hashed on their own."""


class _Damaged(Exception):
    """The artifact in the cache is not what was stored."""


@dataclass(frozen=True)
class Found:
    """An artifact in the cache: its file and what was noted when it was stored: "chip", "kernels"."""

    path: Path
    facts: dict[str, Any]

    def copy(self, target: str | Path) -> bool:
        """Writes the artifact to `target`; False when it turns out to be damaged (and is removed)."""
        crc, size = 0, 0
        try:
            with open(self.path, "rb") as source, output_file(target) as out:
                while chunk := source.read(CHUNK):
                    crc, size = zlib.crc32(chunk, crc), size + len(chunk)
                    out.write(chunk)
                if (crc, size) != (self.facts["crc"], self.facts["size"]):
                    raise _Damaged
        except _Damaged:
            self.remove()
            return False
        return True

    def remove(self) -> None:
        for path in (self.path, self.path.with_suffix(".json")):
            path.unlink(missing_ok=True)


@dataclass(frozen=True)
class Ticket:
    """A compilation that may be found or stored. `begin` is when its files were first looked at, in ns.

    `model` is the file of the model; a program in memory has none."""

    model: Path | None
    key: str
    begin: int

    def find(self) -> Found | None:
        """The artifact of an equal compilation before."""
        try:
            files = json.loads(_path(self.key, ".list").read_text())
            folder = self.model.parent if self.model is not None else Path()
            path = _path(self._whole([folder / str(f) for f in files]), ".xcm")
            facts = json.loads(path.with_suffix(".json").read_text())
            if path.stat().st_size != facts["size"] or not isinstance(facts["kernels"], int):
                return None
            for used in (_path(self.key, ".list"), path, path.with_suffix(".json")):
                os.utime(used)
            return Found(path, facts)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    @contextlib.contextmanager
    def claimed(self) -> Iterator[None]:
        """Waits while another process or thread compiles the same: ranks of one machine share one compilation.

        Without files that can be locked, as in a read-only folder, nobody waits."""
        path = _path(self.key, ".lock")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = path.open("wb")
        except OSError:
            yield
            return
        with file:
            with contextlib.suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX)
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
                with contextlib.suppress(OSError):
                    fcntl.flock(file, fcntl.LOCK_UN)        # forked processes hold it, too

    def store(self, artifact: Path, files: Sequence[Path], facts: dict[str, Any], *,
              move: bool = False) -> Found | None:
        """Keeps `artifact`, made of the model and the external data in `files`; `move` takes the file away.

        None, and nothing is kept, when a file has changed meanwhile, for an artifact that would take over a quarter of
        the cache, and when the disk is full.
        """
        try:
            read = () if self.model is None else (self.model, *files)
            names = [] if self.model is None else [str(f.resolve().relative_to(self.model.parent.resolve()))
                                                   for f in files]
            size = artifact.stat().st_size
            if 4 * size > cache.limit() or any(f.stat().st_ctime_ns >= self.begin for f in read):
                return None
            path = _path(self._whole(files), ".xcm")
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = artifact if move else temporary()
            if not move:
                _copy(artifact, partial)
            crc = _crc(partial)
            os.replace(partial, path)
            facts = facts | {"size": size, "crc": crc}
            _write(path.with_suffix(".json"), facts)
            _write(_path(self.key, ".list"), names)
            cache.count(size)
            cache.keep_limit()
            return Found(path, facts)
        except (OSError, ValueError):
            return None

    def _whole(self, files: Sequence[Path]) -> str:
        return hashlib.sha256(b"\0".join([self.key.encode(), *(_digest(f) for f in files)])).hexdigest()[:40]


def ticket(model: Any, options: CompileOptions, plugins: Sequence[str] = ()) -> Ticket | None:
    """The ticket of a compilation with the target's own pipeline; None where each one has something to do or to say."""
    path = Path(model) if isinstance(model, (str, Path)) and Path(model).suffix in (".onnx", ".pt2") else None
    if (path is None and not isinstance(model, TorchProgram)) or not options.cache or plugins:
        return None
    if options.verbose or options.dump_stages or options.debug_patterns or options.verify != "stage":
        return None
    begin = time.time_ns() - 10_000_000     # files' times have the clock's coarse ticks
    try:
        content = model.key().encode() if path is None else _digest(path)
    except (OSError, ValueError):
        return None
    h = hashlib.sha256(content)
    chosen = {f.name: getattr(options, f.name) for f in dataclasses.fields(options) if f.name not in NEUTRAL}
    name = "" if path is None else path.stem
    for part in (cache.compiler_version(), name, repr(sorted(chosen.items())), options.code_key(), _machine(options)):
        h.update(part.encode() + b"\0")
    return Ticket(path, h.hexdigest()[:40], begin)


def temporary() -> Path:
    """The path of a new file in the cache's folder, to be written and then stored."""
    folder = cache.folder() / "models"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{os.getpid()}.{threading.get_ident()}.{time.monotonic_ns()}.tmp"


def _machine(options: CompileOptions) -> str:
    """The chips, and what this machine adds to the key: a chip that is not named, or a tool of the target."""
    from xcc.targets.base import chip_of, get_target
    from xcc.targets.chip_spec import NATIVE, split_specs

    target = get_target(options.target)
    parts: list[Any] = [target.tools()]
    for spec in split_specs(options.chip):
        name, *attributes = spec.split(",")
        native = target.native_key if name in ("", NATIVE) else None
        parts.append((native(), attributes) if native is not None else chip_of(target, spec))
    return repr(parts)


def _digest(path: Path) -> bytes:
    """A hash of the file's bytes: of the hashes of its chunks, made by two threads."""
    with open(path, "rb") as f:
        size = os.fstat(f.fileno()).st_size
        if size <= CHUNK:
            return hashlib.sha256(f.read()).digest()
        parts = [b""] * (-(-size // CHUNK))
        with mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as data, memoryview(data) as view:

            def work(first: int) -> None:
                for i in range(first, len(parts), 2):
                    parts[i] = hashlib.sha256(view[i * CHUNK:(i + 1) * CHUNK]).digest()

            other = threading.Thread(target=work, args=(1,))
            other.start()
            work(0)
            other.join()
    return hashlib.sha256(b"".join(parts)).digest()


def _crc(path: Path) -> int:
    crc = 0
    with open(path, "rb") as f:
        while chunk := f.read(CHUNK):
            crc = zlib.crc32(chunk, crc)
    return crc


def _copy(source: Path, target: Path) -> None:
    import shutil

    shutil.copyfile(source, target)


def _write(path: Path, data: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = temporary()
    partial.write_text(json.dumps(data))
    os.replace(partial, path)


def _path(key: str, suffix: str) -> Path:
    return cache.folder() / "models" / key[:2] / (key[2:] + suffix)
