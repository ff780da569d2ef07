"""Runs compiled models on this machine's GPU in a process of its own, which an error of the device ends alone.

The process imports numpy and xcc.runtime only; who asks it never makes a context on the GPU, and may be a fork.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["Device"]

ROOT = Path(__file__).parents[2]


class Device:
    """The process; it is started when it is first needed, and again after what it could not run."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, artifact: Any, given: Mapping[str, Any]) -> dict[str, Any]:
        """The model's outputs, numpy arrays by name; RuntimeError with what the process said or died of."""
        with tempfile.NamedTemporaryFile(suffix=".xcm") as file:
            artifact.save(file.name)
            try:
                answer = self._asked((file.name, dict(given)))
            except BaseException:       # the time of the sample is over, too: what it says later is not for the next
                self.close()
                raise
        if isinstance(answer, str):
            self.close()
            raise RuntimeError(answer)
        return dict(answer)

    def close(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
        self._process = None

    def _asked(self, question: Any) -> Any:
        if self._process is None:
            path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
            self._process = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                             env=os.environ | {"PYTHONPATH": path})
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        try:
            pickle.dump(question, process.stdin)
            process.stdin.flush()
            return pickle.load(process.stdout)
        except (EOFError, BrokenPipeError):
            raise RuntimeError(f"the process that runs on the GPU ended with status {process.wait()}") from None


def _serve() -> None:
    """Answers each (path, inputs) with outputs, or with what is wrong: then it ends."""
    from xcc.runtime.model import load

    questions, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while True:
        try:
            path, given = pickle.load(questions)
        except EOFError:
            return
        try:
            answer: Any = load(path).run(given)
        except Exception as e:
            answer = f"{type(e).__name__}: {e}"
        pickle.dump(answer, answers)
        answers.flush()
        if isinstance(answer, str):
            return


if __name__ == "__main__":
    _serve()
