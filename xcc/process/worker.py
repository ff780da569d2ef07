"""Kernel compilation, one kernel at a time, in a process of its own so that a crash of MLIR or LLVM stays there.

The process reads frames from standard input and answers on standard output; a frame is a length and a pickle.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import sys
import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, BinaryIO

from xcc.diagnostics import CompilerBug, NoRoom, UserError
from xcc.options import CompileOptions
from xcc.targets.base import Chip, KernelBinary

if TYPE_CHECKING:
    from xcc.passes.pipeline import Pipeline

__all__ = ["KernelJob", "KernelResult", "compile_kernel", "read_frame", "write_frame"]


MOST_SMALLER = 16
"""How often tiles are made smaller at most: from 256 x 256 in 3 stages to a few lanes."""


@dataclass(frozen=True)
class KernelJob:
    """A kernel to compile: its IR and everything that decides what comes out. Where `pipeline` is None the IR is
    a tile program, for its target's own."""

    name: str
    text: str
    pipeline: str | None
    chip: Chip
    options: CompileOptions
    keep: tuple[str, ...] = ()      # stages whose IR is wanted back
    emit: bool = True               # False: stop after the pipeline
    plugins: tuple[str, ...] = ()
    stage: str = ""                 # that `text` is the result of


@dataclass
class KernelResult:
    """`binary` is None when the job stops before code. `shares`: see KernelBinary."""

    binary: KernelBinary | None = None
    shares: tuple[tuple[int, int], ...] = ()
    kept: dict[str, str] = field(default_factory=dict)
    seconds: dict[tuple[str, str], float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass
class _Made:
    """What earlier attempts at a kernel came to: IR where all is decided, and code by the IR of the last stage."""

    plans: set[str] = field(default_factory=set)
    codes: dict[str, KernelBinary] = field(default_factory=dict)


def compile_kernel(job: KernelJob, at: Any = lambda _stage, _pass: None) -> KernelResult:
    """Compiles in this process: the stages of `job.pipeline`, then the target's code generator.

    Where the code spills, and the target says so, again for a chip of fewer registers: what spills least is the result.
    """
    from xcc.targets.base import get_target

    made = _Made()
    result = _fitting(job, at, made)
    assert result is not None
    for registers in get_target(job.options.target).fewer_registers if job.emit else ():
        if not _spills(result):
            break
        other = _fitting(replace(job, chip=replace(job.chip, vector_registers=registers)), at, made)
        if other is None:
            continue
        if _spills(other) < _spills(result):
            result, other = other, result
        result.seconds = {key: s + other.seconds.get(key, 0.0) for key, s in result.seconds.items()}
    return result


def _fitting(job: KernelJob, at: Any, made: _Made) -> KernelResult | None:
    """The kernel with tiles as small as its shared memory needs them, where the strategy chooses them; None where it
    is that of an earlier attempt."""
    try:
        return _attempt(job, at, made)
    except NoRoom as e:
        if job.pipeline is None:
            raise UserError(f"{e.message}: take smaller tiles") from None
        for steps in range(1, MOST_SMALLER + 1):
            with contextlib.suppress(NoRoom):
                result = _attempt(job, at, made, steps)
                if result is not None:
                    result.notes.append(f"kernel '{job.name}': {e.message}: tiles made smaller ({steps})")
                return result
        raise


def _spills(result: KernelResult) -> int:
    return int(dict(result.binary.report).get("spills", 0)) if result.binary is not None else 0


def _attempt(job: KernelJob, at: Any, made: _Made, smaller: int = 0) -> KernelResult | None:
    """The kernel compiled once, its tiles made smaller so many times than the strategy's; None where what is decided
    about it is what was decided in an earlier attempt. `made` has those."""
    from xcc.context import parse_module, shared_context
    from xcc.driver.plugins import load_plugin
    from xcc.driver.shared_buffers import shared_buffers, wanted_pairs
    from xcc.driver.stages import Clock, run_stage
    from xcc.passes.base import PassContext
    from xcc.passes.pipeline import Pipeline
    from xcc.targets.base import get_target
    from xcc.targets.front import tile_pipeline

    for plugin in job.plugins:
        load_plugin(plugin)
    result = KernelResult()
    target = get_target(job.options.target)
    ir_text = job.text if job.options.keep_ir and job.stage == target.kept_stage else ""
    clock = Clock(at)
    ctx = PassContext(chip=job.chip, options=job.options, verbose=result.notes.append)
    context = shared_context()
    module = parse_module(job.text, context, f"kernel '{job.name}'")
    wanted, planned = wanted_pairs(module), ""
    plan = tile_pipeline(job.options) if job.pipeline is None else Pipeline.parse(job.pipeline)
    for stage in _with_tiles(plan, smaller):
        run_stage(stage, module, ctx, clock, job.options.verify)
        if stage.name and stage.name == target.planned_stage:
            planned = str(module)
            if planned in made.plans:
                return None
        if wanted is not None and stage.name == target.shares_after:
            result.shares = shared_buffers(module, wanted)
        if stage.name in job.keep:
            result.kept[stage.name] = str(module)
        if job.options.keep_ir and stage.name == target.kept_stage:
            ir_text = str(module)
    if job.emit:
        text = str(module)
        if text not in made.codes:
            with context:
                made.codes[text] = clock.timed("emit", "emit",
                                               lambda: target.emit_kernel(module, job.chip, job.options))
        if planned:
            made.plans.add(planned)
        result.binary = replace(made.codes[text], name=job.name, ir=ir_text, shares=result.shares)
    result.seconds = clock.seconds
    return result


def _with_tiles(pipeline: Pipeline, smaller: int) -> Pipeline:
    """`pipeline` with the tiles that ``configure`` chooses made smaller so many times."""
    from xcc.passes.linalg.configure import Configure
    from xcc.passes.pipeline import Pipeline

    return Pipeline(tuple(replace(s, passes=tuple(replace(p, smaller=smaller) if isinstance(p, Configure) else p
                                                  for p in s.passes)) for s in pipeline)) if smaller else pipeline


def write_frame(stream: BinaryIO, value: Any) -> None:
    data = pickle.dumps(value)
    view = memoryview(len(data).to_bytes(8, "little") + data)
    while view:
        view = view[stream.write(view):]
    stream.flush()


def read_frame(stream: BinaryIO) -> Any:
    """The next value, EOFError when the other side is gone."""
    return pickle.loads(_read_exactly(stream, int.from_bytes(_read_exactly(stream, 8), "little")))


def _read_exactly(stream: BinaryIO, size: int) -> bytes:
    parts = []
    while size:
        part = stream.read(min(size, 1 << 24))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def serve() -> None:
    """Answers jobs until standard input closes. Frames: ("at", stage, pass)*, then ("done"|"user"|"bug", ...)."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_requests, daemon=True).start()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests = sys.stdin.buffer
    while True:
        try:
            job = read_frame(requests)
        except EOFError:
            return
        write_frame(answers, _answer(job, answers))


def _end_with_requests() -> None:
    """Ends the process when the other end of standard input is closed, also in the midst of a kernel."""
    closed = select.poll()
    closed.register(0, 0)
    closed.poll()
    os._exit(0)


def _answer(job: KernelJob, answers: BinaryIO) -> tuple[Any, ...]:
    import traceback

    try:
        return ("done", compile_kernel(job, lambda stage, what: write_frame(answers, ("at", stage, what))))
    except UserError as e:
        return ("user", e.message)
    except CompilerBug as e:
        return ("bug", e.message, e.details)
    except Exception as e:
        return ("bug", f"{type(e).__name__}: {e}", traceback.format_exc())
