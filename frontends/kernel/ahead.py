"""``xcc kernels.py::softmax``: a kernel compiled ahead of time becomes an artifact like a model's.

The file is imported, which runs it; model files are only read. What the arguments are, the decorator says. Inputs of
the artifact are the arguments, numbers as arrays of one element; outputs are those that the kernel writes, where they
lie.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from xcc import tile
from xcc.diagnostics import UserError, XccError, listed
from xcc.frontends.kernel.artifact import artifact_of
from xcc.frontends.kernel.compiling import compiled
from xcc.frontends.kernel.declared import declared_of, grid_of
from xcc.frontends.kernel.kernel import Kernel
from xcc.frontends.kernel.place import with_source
from xcc.frontends.kernel.trace import trace
from xcc.options import CompileOptions
from xcc.runtime.artifact import Artifact

__all__ = ["compile_reference", "declared_program", "kernel_at", "program_at"]


def kernel_at(reference: str) -> Kernel:
    """The kernel that ``file.py::name`` names; UserError where there is none."""
    file, _, name = reference.partition("::")
    path = Path(file).resolve()
    if not path.is_file():
        raise UserError(f"{file}: no such file")
    module_name = f"xcc_kernels_{path.stem}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[module_name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except XccError:
        raise
    except Exception as e:
        raise UserError(f"{file}: {type(e).__name__}: {e}") from e
    found = {n: k for n, k in vars(module).items() if isinstance(k, Kernel)}
    if name not in found:
        raise UserError(f"{file}: there is no kernel '{name}': it has {listed(list(found)) or 'none'}")
    return found[name]


def declared_program(kernel: Kernel, fixed: Mapping[str, Any]) -> tile.Program:
    """The program for what the decorator says of the arguments."""
    arguments, constants = declared_of(kernel.name, kernel.parameters, kernel.types, fixed)
    grid = grid_of(kernel.name, kernel.grid, arguments, constants)
    parameters = {n: tile.BufferOf(a.dtype, (1,) if a.shape is None else a.shape) for n, a in arguments.items()}
    numbers = tuple(n for n, a in arguments.items() if a.shape is None)
    return trace(kernel.function, kernel.name, constants, parameters, grid, numbers, kernel.config)


def program_at(reference: str, options: CompileOptions) -> tile.Program:
    """The program of ``file.py::name``, for which ``--fix`` gives constants, or of a file of MLIR text."""
    if "::" not in reference:
        return tile.parse(Path(reference))
    return declared_program(kernel_at(reference), {name: json.loads(text) for name, text in options.fix})


def compile_reference(reference: str, options: CompileOptions, pipeline: Any = None, stop: str = "",
                      emit: bool = False) -> tuple[tile.Compiled, Artifact | None]:
    """What the command line compiles: the artifact, or with `stop` the IR of that stage."""
    reference = str(reference)
    for option, given in (("dim", options.dims), ("update", options.updates), ("precision", options.precision)):
        if given:
            raise UserError(f"{reference}: --{option} is for models: a kernel's decorator says what its arguments are")
    keep = pipeline.stage_names() if options.dump_stages else (stop,) if stop else ()
    try:
        made = compiled(program_at(reference, options), options, keep, pipeline, emit or not stop)
    except UserError as e:
        raise with_source(e) from None
    return made, None if stop else artifact_of(made)
