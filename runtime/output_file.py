"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["output_file"]


@contextlib.contextmanager
def output_file(path: str | Path, buffering: int = -1) -> Iterator[Any]:
    """A binary file to write, which takes the place of `path` when the block ends without an exception.

    Until then it lies beside `path` under another name. A link stays: what it points to is replaced. A device or a pipe
    is not replaced: it is written to, once everything is there. `buffering` is that of :func:`open`.

    Raises:
        OSError: that fails.
        ValueError: the path has a zero byte.
    """
    target = Path(os.path.realpath(os.fspath(path)))
    if target.exists() and not target.is_file() and not target.is_dir():
        import shutil
        import tempfile

        with tempfile.TemporaryFile(buffering=buffering) as whole:
            yield whole
            whole.seek(0)
            with open(target, "wb") as out:
                shutil.copyfileobj(whole, out)
        return
    if target.is_dir():
        raise IsADirectoryError(21, os.strerror(21), str(path))
    beside = Path(f"{target}.{os.getpid()}.tmp")
    try:
        with open(beside, "wb", buffering=buffering) as f:
            yield f
        os.replace(beside, target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
