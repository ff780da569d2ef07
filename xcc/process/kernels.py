"""Compiles many kernels: cache first, then in parallel worker processes that are started once and reused."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from xcc.cache import cache
from xcc.diagnostics import UserError
from xcc.driver import reproducer
from xcc.process.child import Child
from xcc.process.fork_guard import may_fork
from xcc.process.worker import KernelJob, KernelResult, compile_kernel

__all__ = ["compile_all", "shut_down"]

TIMEOUT = 600.0
"""Seconds that one kernel may take."""

_Item = tuple[int, KernelJob, str]
"""A kernel's number, itself, and its key in the cache."""


def compile_all(jobs: Sequence[KernelJob], progress: Callable[[int, int], None] = lambda _done, _all: None,
                ) -> list[KernelResult]:
    """The results of `jobs`, in order. The first UserError or CompilerBug (with its reproducer saved) is raised."""
    results: dict[int, KernelResult] = {}
    missing: list[_Item] = []
    for i, job in enumerate(jobs):
        cached = job.options.cache and job.emit and not job.keep and not job.plugins    # a user's pass may say things
        key = cache.key_of(job) if cached else ""
        hit = cache.load(key) if key else None
        if hit is not None:
            results[i] = KernelResult(hit, hit.shares)
        else:
            missing.append((i, job, key))
    progress(len(results), len(jobs))
    lock = threading.Lock()
    stopped = threading.Event()
    interrupted = threading.Event()

    def work(item: _Item) -> None:
        if stopped.is_set():
            return
        i, job, key = item
        try:
            result = _compile(job, interrupted)
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
        _in_parallel(missing, work, stopped, interrupted)
    if any(key for _, _, key in missing):
        cache.keep_limit()
    return [results[i] for i in range(len(jobs))]


def _in_parallel(missing: list[_Item], work: Callable[[_Item], None], stopped: threading.Event,
                 interrupted: threading.Event) -> None:
    """`work` on all that is `missing`, with a thread and a process for each of the workers."""
    missing.sort(key=lambda item: -len(item[1].text))       # long kernels first: the last one to finish is then short
    threads = min(len(missing), missing[0][1].options.workers)
    if may_fork():      # while this process has one thread
        _IDLE[:] = [worker for worker in _IDLE if worker.alive]
        _IDLE.extend(_start_worker(fork=True) for _ in range(threads - len(_IDLE)))
    with ThreadPoolExecutor(threads) as pool:
        try:
            for done in [pool.submit(work, item) for item in missing]:
                done.result()
        except (KeyboardInterrupt, SystemExit):
            stopped.set()
            interrupted.set()
            for worker in list(_BUSY):
                worker.kill()
            raise


def _compile(job: KernelJob, interrupted: threading.Event) -> KernelResult:
    """Compiles in a worker process; one that ends after `interrupted` is set ended because of that."""
    if not job.options.isolate:
        return _compile_here(job)
    worker = _take_worker()
    _BUSY.add(worker)
    at = ("", "")
    deadline = time.monotonic() + TIMEOUT
    try:
        worker.send(job)
        while (answer := worker.receive(max(0.0, deadline - time.monotonic())))[0] == "at":
            at = answer[1:]
        worker.relay()
    except (EOFError, BrokenPipeError, TimeoutError) as e:
        how, details = worker.death()
        if interrupted.is_set():
            raise KeyboardInterrupt from None
        if isinstance(e, TimeoutError):
            how = f"took over {TIMEOUT:.0f} s"
        place = f", stage '{at[0]}', pass '{at[1]}'" if at[0] else ""
        raise reproducer.save_kernel(job, f"kernel '{job.name}'{place}: {how}", details) from None
    except BaseException:
        worker.kill()
        raise
    finally:
        _BUSY.discard(worker)
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


_IDLE: list[Child] = []
_BUSY: set[Child] = set()


def _take_worker() -> Child:
    while _IDLE:
        worker = _IDLE.pop()
        if worker.alive:
            return worker
    return _start_worker(fork=False)


def _start_worker(fork: bool) -> Child:
    alone = {"XCC_WORKER": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return Child("xcc.process.worker", alone, fork=fork)


def shut_down() -> None:
    """Ends idle workers; they also end by themselves when this process does."""
    while _IDLE:
        _IDLE.pop().end(0.5)
