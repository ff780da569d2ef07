"""Starts a worker, test/e2e/rank_worker.py, once for each rank."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

WORKER = Path(__file__).parents[1] / "e2e" / "rank_worker.py"
SECONDS = 240


def start(task: str, path: Any, ranks: int = 2, worker: Path = WORKER, seconds: int = SECONDS) -> list[Any]:
    """What the worker prints as each rank; None where it prints nothing. seconds: that only a hang takes."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    env = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(ranks),
           "LOCAL_WORLD_SIZE": str(ranks),
           "TORCHELASTIC_RUN_ID": uuid.uuid4().hex,     # another test may have found the same port
           "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    started = [subprocess.Popen([sys.executable, str(worker), task, str(path)], stdout=subprocess.PIPE, text=True,
                                env=env | {"RANK": str(r), "LOCAL_RANK": str(r)}) for r in range(ranks)]
    said = []
    try:
        for process in started:
            out = process.communicate(timeout=seconds)[0]
            said.append(json.loads(out) if out else None)
    finally:
        for process in started:
            process.kill()
    return said
