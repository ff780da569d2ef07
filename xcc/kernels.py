"""Compiles many kernels: cache first, then in parallel worker processes that are started once and reused."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from xcc import cache, reproducer
from xcc.diagnostics import UserError
from xcc.worker import KernelJob, KernelResult, compile_kernel, read_frame, write_frame

__all__ = ["compile_all", "shut_down"]

TIMEOUT = 600.0
"""Seconds that one kernel may take."""


def compile_all(jobs: Sequence[KernelJob], progress: Callable[[int, int], None] = lambda _done, _all: None,
                ) -> list[KernelResult]:
    """The results of `jobs`, in order. The first UserError or CompilerBug (with its reproducer saved) is raised."""
    results: dict[int, KernelResult] = {}
    missing: list[tuple[int, KernelJob, str]] = []
    for i, job in enumerate(jobs):
        key = cache.key_of(job) if job.options.cache and job.emit and not job.keep else ""
        hit = cache.load(key) if key else None
        if hit is not None:
            results[i] = KernelResult(binary=hit)
        else:
            missing.append((i, job, key))
    progress(len(results), len(jobs))
    lock = threading.Lock()
    stopped = threading.Event()

    def work(item: tuple[int, KernelJob, str]) -> None:
        if stopped.is_set():
            return
        i, job, key = item
        try:
            result = _compile(job)
        except BaseException:
            stopped.set()
            raise
        if key and result.binary is not None:
            cache.store(key, result.binary)
        with lock:
            results[i] = result
            progress(len(results), len(jobs))

    if missing and not missing[0][1].options.isolate:
        for item in missing:
            work(item)
    elif missing:
        # long kernels first: the last one to finish is then short
        missing.sort(key=lambda item: -len(item[1].text))
        with ThreadPoolExecutor(min(len(missing), missing[0][1].options.workers)) as pool:
            for done in [pool.submit(work, item) for item in missing]:
                done.result()
    if any(key for _, _, key in missing):
        cache.trim()
    return [results[i] for i in range(len(jobs))]


def _compile(job: KernelJob) -> KernelResult:
    if not job.options.isolate:
        return _compile_here(job)
    worker = _take_worker()
    assert worker.stdin and worker.stdout
    at = ("", "")
    try:
        write_frame(worker.stdin, job)  # type: ignore[arg-type]
        deadline = time.monotonic() + TIMEOUT
        while True:
            if not select.select([worker.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise TimeoutError
            answer = read_frame(worker.stdout)  # type: ignore[arg-type]
            if answer[0] != "at":
                break
            at = answer[1:]
    except (EOFError, BrokenPipeError, TimeoutError) as e:
        _end(worker)
        how = f"took over {TIMEOUT:.0f} s" if isinstance(e, TimeoutError) else _death(worker)
        raise reproducer.save_kernel(job, f"kernel '{job.name}', stage '{at[0]}', pass '{at[1]}': {how}") from None
    except BaseException:
        _end(worker)
        raise
    _IDLE.append(worker)
    if answer[0] == "done":
        result: KernelResult = answer[1]
        return result
    if answer[0] == "user":
        raise UserError(f"kernel '{job.name}': {answer[1]}")
    raise reproducer.save_kernel(job, f"kernel '{job.name}': {answer[1]}", answer[2])


def _compile_here(job: KernelJob) -> KernelResult:
    try:
        return compile_kernel(job)
    except UserError as e:
        raise UserError(f"kernel '{job.name}': {e.message}") from None
    except Exception as e:
        raise reproducer.save_kernel(job, f"kernel '{job.name}': {e}", traceback.format_exc()) from e


_IDLE: list[subprocess.Popen[bytes]] = []


def _take_worker() -> subprocess.Popen[bytes]:
    while _IDLE:
        worker = _IDLE.pop()
        if worker.poll() is None:
            return worker
    start = "import sys, json; sys.path[:] = json.loads(sys.argv[1]); from xcc.worker import serve; serve()"
    environment = {**os.environ, "XCC_WORKER": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, "-c", start, json.dumps(sys.path)], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, bufsize=0, env=environment)


def _end(worker: subprocess.Popen[bytes]) -> None:
    try:
        worker.wait(0.5)
    except subprocess.TimeoutExpired:
        worker.kill()
        worker.wait()


def _death(worker: subprocess.Popen[bytes]) -> str:
    import signal

    code = worker.returncode
    if code is not None and code < 0:
        return f"the compiler process died of {signal.Signals(-code).name}"
    return f"the compiler process ended with status {code}"


def shut_down() -> None:
    """Ends idle workers; they also end by themselves when this process does."""
    while _IDLE:
        worker = _IDLE.pop()
        if worker.stdin:
            worker.stdin.close()
        _end(worker)

