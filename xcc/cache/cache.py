"""Compiled kernels on disk, by the hash of everything that decides their code.

An entry is one file: a JSON line with the launches and a checksum, then the code. Files are written under another
name and renamed, so that readers never see half of one. Kernels and the artifacts of :mod:`xcc.cache.model_cache`
together are kept under a size by removing what was unused longest; a file counts what is stored, so that the folder is
walked only when that may be too much. ``XCC_CACHE_DIR`` names the folder, ``XCC_CACHE_BYTES`` its size (default 4 GiB).
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import time
from array import array
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xcc import symbolic
from xcc.diagnostics import UserError
from xcc.targets.base import KernelBinary, KernelLaunch

if TYPE_CHECKING:
    from xcc.process.worker import KernelJob

__all__ = ["compiler_version", "count", "folder", "keep_limit", "key_of", "limit", "load", "store", "trim"]

DEFAULT_BYTES = 4 << 30
KINDS = ("kernels", "models")
PARTS = ("cache", "dialects", "driver", "frontends", "interpreter", "passes", "process", "runtime", "targets", "tile",
         "tools", "tuning")
"""The package's folders, which lie in that of ``xcc`` or, in a checkout, some of them beside it."""
SOURCES = ("*.py", "*.ll", "*.txt")
ABANDONED = 86400.0     # seconds after which a file that was to be renamed is what a crash left


def folder() -> Path:
    """The folder of all that xcc keeps between runs."""
    named = os.environ.get("XCC_CACHE_DIR")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "xcc"


@functools.cache
def compiler_version() -> str:
    """A hash of xcc's sources and of the versions of MLIR and LLVM under it."""
    from importlib import metadata

    h = hashlib.blake2b(digest_size=12)
    for file in _sources():
        h.update(file.read_bytes())
    for package in ("torch-mlir", "llvmlite", "ziglang"):
        try:
            h.update(f"{package}=={metadata.version(package)};".encode())
        except metadata.PackageNotFoundError:
            continue
    return h.hexdigest()


def _sources() -> Iterable[Path]:
    import xcc
    import xcc.targets

    roots = [Path(root) for root in xcc.__path__]       # of a checkout also the folder around, with whatever is there
    parts = [root / part for root in roots for part in PARTS if (root / part).is_dir()]
    parts += [part for root in xcc.targets.__path__ if (part := Path(root)) not in parts]     # of XCC_TARGETS
    for files in (roots[0].glob, *(part.rglob for part in parts)):
        for kind in SOURCES:
            yield from sorted(files(kind))


def key_of(job: KernelJob) -> str:
    """The name of `job`'s entry."""
    h = hashlib.blake2b(digest_size=20)
    for part in (compiler_version(), job.name, job.text, job.pipeline or "", repr(job.chip), job.options.code_key()):
        h.update(part.encode() + b"\0")
    return h.hexdigest()


def load(key: str) -> KernelBinary | None:
    """The kernel stored under `key`; None when there is none or the file is damaged."""
    path = _path(key)
    try:
        head, _, blob = path.read_bytes().partition(b"\n")
        data = json.loads(head)
        if data["checksum"] != hashlib.blake2b(blob, digest_size=16).hexdigest():
            return None
        os.utime(path)
        return _from_json(data, blob)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def store(key: str, kernel: KernelBinary) -> None:
    """Saves `kernel`; a full or read-only disk is no error."""
    data = {"name": kernel.name, "format": kernel.format, "ir": kernel.ir, "report": kernel.report,
            "scratch": [_dim_text(d) for d in kernel.scratch],
            "launches": [[k.entry, [_dim_text(d) for d in k.grid], k.block, k.shared_bytes, k.early]
                         for k in kernel.launches],
            "portable": len(kernel.portable), "shares": kernel.shares,
            "checksum": hashlib.blake2b(kernel.blob + kernel.portable, digest_size=16).hexdigest()}
    path = _path(key)
    temporary = path.with_suffix(f".{os.getpid()}.{id(kernel)}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(json.dumps(data).encode() + b"\n" + kernel.blob + kernel.portable)
        count(temporary.stat().st_size)
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def limit() -> int:
    """Bytes that the cache may take."""
    text = os.environ.get("XCC_CACHE_BYTES", str(DEFAULT_BYTES))
    if not text.isdecimal():
        raise UserError(f"XCC_CACHE_BYTES is '{text}', which is no number of bytes")
    return int(text)


def count(size: int) -> None:
    """Adds `size` bytes to what is counted of the folder: a file of 64-bit numbers, to which each process appends and
    of which :func:`trim` leaves one."""
    with contextlib.suppress(OSError):
        file = os.open(_counted(), os.O_WRONLY | os.O_APPEND)       # none: nothing was counted yet
        try:
            os.write(file, array("q", [size]).tobytes())
        finally:
            os.close(file)


def keep_limit() -> None:
    """Trims the folder to 7/8 of its limit when more than the limit is counted, or nothing was counted yet."""
    most = limit()
    try:
        total = sum(array("q", _counted().read_bytes()))
    except (OSError, ValueError):       # none, or damaged
        total = -1
    if not 0 <= total <= most:
        trim(most - most // 8)


def trim(most: int | None = None) -> None:
    """Removes the entries unused longest until all take at most `most` bytes (default: :func:`limit`).

    What another process may be writing at this moment stays.
    """
    if most is None:
        most = limit()
    files = []
    for path in (p for kind in KINDS for p in (folder() / kind).rglob("*")):
        try:
            info = path.stat()
        except OSError:
            continue
        if path.is_file() and (path.suffix != ".tmp" or info.st_mtime < time.time() - ABANDONED):
            files.append((info.st_mtime, info.st_size, path))
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total <= most:
            break
        path.unlink(missing_ok=True)
        total -= size
    temporary = _counted().with_suffix(f".{os.getpid()}.tmp")
    with contextlib.suppress(OSError):
        temporary.write_bytes(array("q", [total]).tobytes())
        os.replace(temporary, _counted())


def _counted() -> Path:
    return folder() / "bytes"


def _path(key: str) -> Path:
    return folder() / "kernels" / key[:2] / key[2:]


def _dim_text(d: symbolic.Dim) -> int | str:
    return d if isinstance(d, int) else str(d)


def _dim(d: Any) -> symbolic.Dim:
    return d if isinstance(d, int) else symbolic.parse(d)


def _from_json(data: dict[str, Any], blob: bytes) -> KernelBinary:
    launches = tuple(KernelLaunch(entry, tuple(map(_dim, grid)), tuple(block), shared, early)
                     for entry, grid, block, shared, early in data["launches"])
    code = len(blob) - data["portable"]
    return KernelBinary(data["name"], data["format"], blob[:code], launches, tuple(map(_dim, data["scratch"])),
                        tuple((k, v) for k, v in data["report"]), data["ir"], blob[code:],
                        tuple((a, r) for a, r in data["shares"]))
