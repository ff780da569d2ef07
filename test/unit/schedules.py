"""Schedules with other entries, named without the part that they are in."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from xcc.passes.linalg.schedule.schedule import GpuPart, Schedule


def changed(schedule: Schedule, **entries: Any) -> Schedule:
    """`schedule` with these entries, of what all targets share or of its GPU part."""
    gpu = {f.name for f in fields(GpuPart)} & set(entries)
    shared = {name: value for name, value in entries.items() if name not in gpu}
    return replace(schedule, gpu=replace(schedule.gpu, **{name: entries[name] for name in gpu}), **shared)
