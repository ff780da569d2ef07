"""What ``xcc --emit`` writes of machine code: one file of a format, or ``code``, a file a kernel in a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from xcc.diagnostics import UserError, counted
from xcc.targets.base import Chip, Target
from xcc.tools.common import write_output

__all__ = ["CODE", "check_emit", "size_text", "write_code", "write_folder"]

CODE = "code"


def check_emit(emit: str, output: str, stages: Sequence[str], target: Target) -> None:
    """UserError, before work that may take minutes, for an ``--emit`` that the target does not have."""
    if emit and emit not in (*stages, *target.formats, CODE):
        raise UserError(f"--emit={emit}: target {target.name} has no such stage or format; stages are "
                        f"{', '.join(stages)}; formats {', '.join(target.formats)} (a file), {CODE} (a file a kernel)")
    if emit == CODE and not output:
        raise UserError("--emit=code needs -o FOLDER")
    if emit in target.formats and emit not in target.text_formats and not output:
        raise UserError(f"--emit={emit} needs -o FILE")


def write_code(output: str, text: str, kernels: Sequence[Any], target: Target, chip: Chip, kind: str) -> str:
    """Writes all kernels as one file of format `kind`; `text` is their module at the last stage. Says what was
    written."""
    data = target.code_file(text, chip, kind) if kernels else b""
    write_output(output or "-", data)
    return f"{counted(len(kernels), 'kernel')}, {size_text(len(data))} of {kind}{f' in {output}' if output else ''}"


def write_folder(folder: str, kernels: Sequence[Any], target: Target) -> str:
    """Writes each kernel's code as ``name.format`` into `folder`, its portable form too; says what was written."""
    files = {f"{k.name}.{'o' if k.format == 'obj' else k.format}": k.blob for k in kernels}
    files |= {f"{k.name}.{target.portable}": k.portable for k in kernels if k.portable}
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            Path(folder, name).write_bytes(data)
    except OSError as e:
        raise UserError(f"{folder}: cannot be written: {e.strerror}") from None
    return f"{counted(len(kernels), 'kernel')}, {size_text(sum(map(len, files.values())))} in {folder}"


def size_text(n: int) -> str:
    """`n` bytes for a reader."""
    return f"{n / 1e6:.1f} MB" if n >= 100_000 else f"{n / 1e3:.1f} kB"
