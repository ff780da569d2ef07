"""Objects to one shared object: LLD from ziglang, else a linker of the system."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from xcc.diagnostics import CompilerBug, UserError


def _linkers() -> list[list[str]]:
    """Command lines that link ELF objects, best first."""
    found = []
    spec = importlib.util.find_spec("ziglang")
    for folder in spec.submodule_search_locations or () if spec is not None else ():
        path = shutil.which("zig", path=folder)     # python -m ziglang would start Python only to start this
        if path:
            found.append([path, "ld.lld"])
    for name in ("ld.lld", "ld", "cc"):
        path = shutil.which(name)
        if path:
            found.append([path])
    return found


def link_shared(objects: Sequence[bytes]) -> bytes:
    """The .so that holds all `objects`; undefined symbols (libc, libm) are left to the loader."""
    linkers = _linkers()
    if not linkers:
        raise UserError("no linker found: pip install ziglang, or install ld.lld, ld or cc")
    with tempfile.TemporaryDirectory(prefix="xcc-link-") as folder:
        paths = []
        for i, blob in enumerate(objects):
            path = Path(folder, f"{i}.o")
            path.write_bytes(blob)
            paths.append(str(path))
        out = Path(folder, "model.so")
        flags = ["-shared", "-o", str(out)]
        flags += [] if linkers[0][-1].endswith("cc") else ["--strip-debug"]
        done = subprocess.run([*linkers[0], *flags, *paths], capture_output=True, text=True)
        if done.returncode:
            raise CompilerBug(f"linking failed with status {done.returncode}", details=done.stderr)
        return out.read_bytes()
