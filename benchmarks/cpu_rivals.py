"""The processes that benchmarks/cpu.py times: one a runtime, for case after case (benchmarks/cpu_worker.py)."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

LOADING = 600.0         # seconds that a runtime may take to load or compile a case
RUNNING = 60.0          # seconds that a turn may take
SILENCE = 0.03          # between turns: threads of the one before go to sleep


class Rival:
    """A runtime's process; `why` says why it is out of the present case, "" while it is in. It stands still but for its
    turns. One that died or hangs is started again with the next case."""

    def __init__(self, name: str, threads: int, log: Path) -> None:
        self.name, self.threads, self.log = name, threads, log
        self.why = ""
        self.times: list[float] = []
        self.kernel_ms: list[float] = []                # of the longest kernel alone, where the case asks for it
        self.facts: dict[str, Any] = {}
        self._process: subprocess.Popen[str] | None = None
        self._alone = False

    def load(self, folder: Path, alone: bool = False) -> None:
        """Begins to load the case in `folder`, `alone` in a new process; :meth:`loaded` waits for it."""
        self.why, self.times, self.kernel_ms, self.facts = "", [], [], {}
        if alone or self._alone:
            self.stop()
        self._alone = alone
        if self._process is None or self._process.poll() is not None:
            self._process = self._start()
        self._signal(signal.SIGCONT)
        self._send(folder=str(folder), threads=self.threads, alone=alone)

    def loaded(self) -> None:
        self.facts = self._answer(LOADING)
        self.why = str(self.facts.get("absent", self.why))
        self._signal(signal.SIGSTOP)

    def turn(self, seconds: float) -> None:
        """Runs the case for about `seconds`."""
        self._signal(signal.SIGCONT)
        self._send(seconds=seconds)
        answer = self._answer(RUNNING)
        self.why = str(answer.get("absent", self.why))
        self.times += answer.get("times", [])
        self.kernel_ms += [answer["kernel_ms"]] if "kernel_ms" in answer else []
        time.sleep(SILENCE)
        self._signal(signal.SIGSTOP)

    def end(self) -> None:
        """Of the case; the process waits for the next one."""
        if self._process is not None and self.facts and not self.why:
            self._signal(signal.SIGCONT)
            self._send(end=True)
            self._answer(RUNNING)

    def stop(self) -> None:
        """Of the process."""
        if self._process is not None and self._process.poll() is None:
            self._signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()

    def _start(self) -> subprocess.Popen[str]:
        environment = {**os.environ, "OMP_NUM_THREADS": str(self.threads), "OPENBLAS_NUM_THREADS": str(self.threads),
                       "XCC_THREADS": str(self.threads), "PYTHONWARNINGS": "ignore"}
        environment.pop("PYTHONSAFEPATH", None)         # the worker's modules lie beside it
        with open(self.log, "a") as log:
            return subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("cpu_worker.py")), self.name], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=log, text=True, env=environment, start_new_session=True)

    def _send(self, **data: Any) -> None:
        assert self._process and self._process.stdin
        try:
            self._process.stdin.write(json.dumps(data) + "\n")
            self._process.stdin.flush()
        except OSError:
            self.why = "its process died"

    def _answer(self, limit: float) -> dict[str, Any]:
        assert self._process and self._process.stdout
        if not select.select([self._process.stdout], [], [], limit)[0]:
            self.why = f"no answer in {limit:.0f} s"
            self.stop()
            return {}
        try:
            answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        except ValueError:
            self.why = f"its process died ({self._process.wait()})"
            return {}
        return answer

    def _signal(self, number: int) -> None:
        """To the process and those that it has started."""
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, number)
