"""C for tests: stand-ins for drivers, and for instructions that this machine does not have."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path


def compile_c(source: Path, out: Path, *flags: str) -> None:
    """Compiles with the headers and libraries that ziglang brings: what is installed here is not looked at."""
    target = f"{platform.machine()}-linux-gnu"
    command = [sys.executable, "-m", "ziglang", "cc", "-target", target, "-fPIC", *flags, str(source), "-o", str(out)]
    subprocess.run(command, check=True)
