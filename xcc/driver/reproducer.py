"""Saves the input of what failed, and says how to replay it."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from xcc.diagnostics import CompilerBug
from xcc.driver.plugins import loaded_plugins
from xcc.options import CompileOptions
from xcc.passes.pipeline import Stage
from xcc.targets.base import Chip, get_target
from xcc.targets.chip_spec import spec_of
from xcc.targets.front import tile_pipeline
from xcc.weights import WeightStore

if TYPE_CHECKING:
    from xcc.process.worker import KernelJob

__all__ = ["import_command", "save_kernel", "save_module", "save_text"]


def save_kernel(job: KernelJob, message: str, details: str = "") -> CompilerBug:
    """The CompilerBug to raise for `job`, its IR saved."""
    pipeline = tile_pipeline(job.options) if job.pipeline is None else job.pipeline
    flags = [*_flags(job.options, job.chip), f"--pass-pipeline={pipeline}",
             *(f"--plugin={p}" for p in job.plugins)]
    return save_text(job.name, job.text, flags + ["--emit-kernel", "-o", os.devnull] * job.emit, message, details)


def save_module(text: str, weights: WeightStore, stage: Stage, options: CompileOptions, chip: Chip, message: str,
                details: str = "") -> CompilerBug:
    """The CompilerBug to raise for a stage that failed on a whole module, `text` being the module before it."""
    from xcc.weight_files import write_weights

    flags = [*_flags(options, chip), f"--pass-pipeline={stage}", *(f"--plugin={p}" for p in loaded_plugins())]
    bug = save_text(f"stage-{stage.name}", text, flags, message, details)
    if len(weights):
        beside = Path(bug.reproducer).with_suffix(".safetensors")
        write_weights(beside, weights)
        bug.command += f" --weights={quote(str(beside))}"
    return bug


def save_text(name: str, text: str, flags: list[str], message: str, details: str = "") -> CompilerBug:
    """Saves `text` as an .mlir file; `flags` are those of xcc-opt."""
    digest = hashlib.blake2b(text.encode(), digest_size=4).hexdigest()
    path = _folder() / f"{name}-{digest}.mlir"
    path.write_text(text)
    command = " ".join(quote(word) for word in ["xcc-opt", str(path), *flags])
    return CompilerBug(message, reproducer=str(path), command=command, details=details)


def import_command(model: Path, options: CompileOptions) -> str:
    """The command that imports `model` as `options` say and stops."""
    words = ["xcc", str(model), *(f"--dim={n}={low}..{high}" for n, low, high in options.dims),
             *(f"--fix={n}={value}" for n, value in options.fix),
             *(f"--update={output}={source}" for output, source in options.updates), "--emit=xt", "-o", os.devnull]
    return " ".join(quote(word) for word in words)


def _flags(options: CompileOptions, chip: Chip) -> list[str]:
    target = ",".join([options.target, *(f"{k}={v}" for k, v in options.target_options)])
    flags = [f"--target={target}", f"--chip={spec_of(chip, get_target(options.target).chips())}"]
    if options.precision:
        flags.append(f"--precision={options.precision}")
    return flags


def _folder() -> Path:
    from xcc.cache.cache import folder

    path = Path(os.environ.get("XCC_REPRODUCER_DIR") or folder() / "bugs")
    try:
        path.mkdir(parents=True, exist_ok=True)
        return path
    except OSError:
        return Path(tempfile.mkdtemp(prefix="xcc-bug-"))
