"""``xcc.compile`` in a process of its own: a crash of MLIR or LLVM is an exception for the caller, not its end.

A *nursery* (fork server) starts once and has the compiler imported. For each model it forks a child, which compiles and
writes the artifact into a file. When a stage kills that child, a second one goes as far and reports the module that
the stage was given (:class:`xcc.process.fork_guard.Steps`). Nothing of the caller's threads or memory is in these
processes, and nothing of theirs stays in the caller.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from xcc.diagnostics import EXIT_BUG, CompilerBug, UserError
from xcc.frontends.torch.program import StoredProgram, TorchProgram
from xcc.options import CompileOptions
from xcc.process.child import Child
from xcc.process.fork_guard import Steps, wait
from xcc.process.forked import converters, prepare
from xcc.process.worker import read_frame, write_frame

if TYPE_CHECKING:
    from xcc.passes.pipeline import Pipeline

__all__ = ["Expected", "ModelJob", "can_isolate", "compile_apart", "converted_ops", "expect"]


YOUNG = 20_000
"""Objects between two collections in the processes that compile, which make many and no cycles to speak of."""


@dataclass(frozen=True)
class ModelJob:
    """A model to compile: a path, the bytes of an ONNX file, or a PyTorch program; `pipeline` is text, "" for the
    target's own."""

    model: str | bytes | StoredProgram
    options: CompileOptions
    pipeline: str
    plugins: tuple[str, ...]
    output: str
    folder: str
    environment: dict[str, str]

    @property
    def frontend(self) -> str:
        """What reads the model, as a file's suffix; "" where nothing does."""
        if isinstance(self.model, StoredProgram):
            return ".pt2"
        suffix = ".onnx" if isinstance(self.model, bytes) else Path(self.model).suffix
        return suffix if suffix in (".onnx", ".pt2") else ""


@dataclass(frozen=True)
class Expected:
    """What the next model is likely to need: its target, and what reads it, as in a ModelJob."""

    target: str
    frontend: str


@dataclass(frozen=True)
class Listed:
    """Asks which ops a frontend converts; what reads a model, as in a ModelJob."""

    frontend: str


def expect(target: str, frontend: str) -> None:
    """Starts a nursery, where none waits, which imports what compiling needs; does not wait for it."""
    if not hasattr(os, "fork"):
        return
    with _LOCK:
        if any(nursery.alive for nursery in _IDLE):
            return
        nursery = Child("xcc.process.isolation", own_session=True)
        _IDLE.append(nursery)
        with contextlib.suppress(OSError):      # what it died of, the next model is told
            nursery.send(Expected(target, frontend))


def can_isolate(model: Any, pipeline: Pipeline | None) -> tuple[str, ...] | None:
    """The plugins that the nursery needs; None where only this process can do the work.

    That is so for passes whose class is in no file, and on systems without fork.
    """
    from xcc.driver.plugins import loaded_plugins

    known = isinstance(model, (str, Path, TorchProgram)) or hasattr(model, "opset_import")
    if not hasattr(os, "fork") or not known:
        return None
    if pipeline is None:
        return loaded_plugins()
    from xcc.driver.plugins import plugins_of

    try:
        return (*loaded_plugins(), *plugins_of(pipeline))
    except UserError:
        return None


def compile_apart(model: Any, options: CompileOptions, pipeline: Pipeline | None, plugins: tuple[str, ...],
                  output: Path) -> tuple[tuple[Path, ...], dict[str, Any]]:
    """Compiles into the file `output`; returns the files of external data that were read, and facts for the cache."""
    if isinstance(model, TorchProgram):
        beside = output.with_suffix(".weights")
        try:
            return _sent(model.save(beside), options, pipeline, plugins, output)
        finally:
            beside.unlink(missing_ok=True)
    source = str(model) if isinstance(model, (str, Path)) else model.SerializeToString()
    return _sent(source, options, pipeline, plugins, output)


def converted_ops(frontend: str) -> frozenset[str]:
    """The names of the ops that a frontend has converters for. The nursery that is asked compiles the next model."""
    return frozenset(_answer(Listed(frontend))[1] if hasattr(os, "fork") else converters(frontend))


def _sent(source: str | bytes | StoredProgram, options: CompileOptions, pipeline: Pipeline | None,
          plugins: tuple[str, ...], output: Path) -> tuple[tuple[Path, ...], dict[str, Any]]:
    job = ModelJob(source, options, "" if pipeline is None else str(pipeline), plugins, str(output), os.getcwd(),
                   dict(os.environ))
    answer = _answer(job)
    return tuple(map(Path, answer[1])), answer[2]


def _answer(question: ModelJob | Listed) -> tuple[Any, ...]:
    """What a nursery answers when all went well; what it says of an error is raised."""
    nursery = _take()
    try:
        nursery.send(question)
        answer: tuple[Any, ...] = nursery.receive()
        nursery.relay()
    except (EOFError, BrokenPipeError):
        how, details = nursery.death()
        raise CompilerBug(how, details=details) from None
    except BaseException:
        nursery.kill()
        nursery.end(1.0)
        raise
    with _LOCK:
        _IDLE.append(nursery)
    if answer[0] == "done":
        return answer
    if answer[0] == "user":
        raise UserError(answer[1])
    raise CompilerBug(*answer[1:])


_IDLE: list[Child] = []
_LOCK = threading.Lock()


def _take() -> Child:
    with _LOCK:
        while _IDLE:
            nursery = _IDLE.pop()
            if nursery.alive:
                return nursery
    return Child("xcc.process.isolation", own_session=True)


def serve() -> None:
    """The nursery: a child for each job until standard input closes."""
    import xcc.driver.versions  # noqa: F401

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.set_threshold(YOUNG)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while True:
        try:
            job: ModelJob | Expected | Listed = read_frame(sys.stdin.buffer)
        except EOFError:
            return
        if isinstance(job, Expected):
            prepare(job.target, job.frontend)
            continue
        if isinstance(job, Listed):
            write_frame(answers, _listed(job))
            continue
        prepare(job.options.target, job.frontend)
        gc.freeze()     # what is here lives on: a child's collections need not look at it
        status = _in_a_child(job, answers)
        if status > 0 and status != EXIT_BUG:
            write_frame(answers, ("bug", f"the compiler process ended with status {status}"))


def _listed(question: Listed) -> tuple[Any, ...]:
    import traceback

    try:
        return ("done", sorted(converters(question.frontend)))
    except Exception as e:
        return ("bug", f"{type(e).__name__}: {e}", "", "", traceback.format_exc())


def _in_a_child(job: ModelJob, answers: BinaryIO) -> int:
    """The status that the child ends with which compiles the model; it, or who speaks for it, has answered."""
    steps = Steps(lambda bug: _report(bug, answers))
    while True:
        child = os.fork()
        if child == 0:
            os._exit(_compile(job, answers, steps))
        status = _wait(child, job)
        if not steps.again(status):
            return status


def _report(bug: CompilerBug, answers: BinaryIO) -> None:
    write_frame(answers, ("bug", bug.message, bug.reproducer, bug.command, bug.details))


def _wait(child: int, job: ModelJob) -> int:
    """The status that `child` ends with. When nobody is left to hear of it, the whole session ends with it."""
    if hasattr(os, "pidfd_open"):
        events = select.poll()
        events.register(0, 0)           # standard input: only that its other end is closed
        with os.fdopen(os.pidfd_open(child), "rb") as process:
            events.register(process, select.POLLIN)
            ready = dict(events.poll())
        if 0 in ready and len(ready) == 1:
            Path(job.output).unlink(missing_ok=True)
            os.killpg(0, signal.SIGKILL)
    return wait(child)


def _compile(job: ModelJob, answers: BinaryIO, steps: Steps) -> int:
    """The child's work: one answer, then the status to end with."""
    import traceback

    try:
        steps.begin()
        os.environ.clear()
        os.environ.update(job.environment, XCC_WORKER="1")
        os.chdir(job.folder)
        write_frame(answers, _result(job, steps))
        return 0
    except UserError as e:
        write_frame(answers, ("user", e.message))
    except CompilerBug as e:
        _report(e, answers)
    except Exception as e:
        write_frame(answers, ("bug", f"{type(e).__name__}: {e}", "", "", traceback.format_exc()))
    return EXIT_BUG


def _result(job: ModelJob, steps: Steps) -> tuple[Any, ...]:
    from xcc.compiler import Observer
    from xcc.driver.plugins import load_plugin
    from xcc.driver.ranks import compile_ranks
    from xcc.passes.pipeline import Pipeline

    for plugin in job.plugins:
        load_plugin(plugin)
    model: Any = job.model
    if isinstance(model, bytes):
        import onnx

        model = onnx.load_from_string(model)
    elif isinstance(model, StoredProgram):
        model = model.load()
    pipeline = Pipeline.parse(job.pipeline) if job.pipeline else None
    compiled = compile_ranks(model, job.options, pipeline, observer=Observer(guard=steps))
    assert compiled.artifact is not None
    compiled.artifact.save(job.output)
    facts = {"chip": compiled.artifact.manifest["chip"], "kernels": len(compiled.kernels)}
    return ("done", [str(f) for f in compiled.files], facts)
