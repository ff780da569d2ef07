"""Objects to one shared object: LLD from ziglang, else a linker of the system."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from xcc.diagnostics import CompilerBug, UserError
from xcc.targets.lld import lld


def linker() -> list[str]:
    """How a command line that links ELF objects begins; nothing where there is no linker."""
    path = shutil.which("ld") or shutil.which("cc")
    return lld() or ([path] if path else [])


def link_shared(objects: Sequence[bytes]) -> bytes:
    """The .so that holds all `objects`; undefined symbols (libc, libm) are left to the loader."""
    command = linker()
    if not command:
        raise UserError("no linker found: pip install ziglang, or install ld.lld, ld or cc")
    with tempfile.TemporaryDirectory(prefix="xcc-link-") as folder:
        paths = []
        for i, blob in enumerate(objects):
            path = Path(folder, f"{i}.o")
            path.write_bytes(blob)
            paths.append(str(path))
        out = Path(folder, "model.so")
        flags = ["-shared", "-o", str(out)]
        flags += [] if command[-1].endswith("cc") else ["--strip-debug"]
        done = subprocess.run([*command, *flags, *paths], capture_output=True, text=True)
        if done.returncode:
            raise CompilerBug(f"linking failed with status {done.returncode}", details=done.stderr)
        return out.read_bytes()
