"""Programs of several processes each, that are made ready side by side and timed one after the other.

A process calls `turn` when it has compiled and run what it will time, and goes on when all others wait: compilations
share the cores, and nothing runs beside what is timed.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Task", "in_turn", "ranks_of", "turn"]

FILES = "XCC_TURN_FILES"        # environment: what the names of a program's two files begin with
STEP = 0.005                    # seconds between looks


@dataclass(frozen=True)
class Task:
    """`script` with `arguments` in `ranks` processes; rank 0 prints seconds at last."""

    name: str
    script: Path
    ranks: int
    arguments: tuple[str, ...] = ()


def turn() -> None:
    """Waits for this program's turn, where it has one."""
    files = os.environ.get(FILES)
    if not files:
        return
    Path(f"{files}.ready.{os.environ.get('RANK', '0')}").touch()
    while not Path(f"{files}.go").exists():
        time.sleep(STEP)


def ranks_of(command: Sequence[str], ranks: int, **env: str) -> list[subprocess.Popen[str]]:
    """The processes of a launcher: `command` for each rank of this machine."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    shared = os.environ | env | {"WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1",
                                 "MASTER_PORT": str(port)}
    return [subprocess.Popen(command, env=shared | {"RANK": str(r), "LOCAL_RANK": str(r)}, text=True,
                             stdout=subprocess.PIPE) for r in range(ranks)]


def in_turn(tasks: Sequence[Task], limit: float) -> Iterator[tuple[Task, float | None]]:
    """Each task and its seconds: 0 where it fails, None where it is not ready within `limit` seconds."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as ends:
        files = [f"{folder}/{n}" for n in range(len(tasks))]
        started = [ranks_of([sys.executable, str(t.script), *t.arguments], t.ranks, **{FILES: f})
                   for t, f in zip(tasks, files, strict=True)]
        for p in (p for processes in started for p in processes):
            ends.callback(p.kill)
        end = time.monotonic() + limit
        while time.monotonic() < end and any(map(_is_getting_ready, started, files)):
            time.sleep(STEP)
        late = [_is_getting_ready(processes, f) for processes, f in zip(started, files, strict=True)]
        for p in (p for processes, is_late in zip(started, late, strict=True) if is_late for p in processes):
            p.kill()
        for task, processes, f, is_late in zip(tasks, started, files, late, strict=True):
            Path(f"{f}.go").touch()
            said = [p.communicate()[0] for p in processes]
            failed = any(p.returncode for p in processes)
            yield task, None if is_late else 0.0 if failed else float(said[0].split()[-1])


def _is_getting_ready(processes: Sequence[Any], files: str) -> bool:
    return all(p.poll() is None for p in processes) and \
        not all(Path(f"{files}.ready.{r}").exists() for r in range(len(processes)))
