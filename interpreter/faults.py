"""What can be wrong with a kernel that runs: the kinds of fault, and the report of one run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["FaultKind", "KernelFault", "Report", "SharedSite"]

FaultKind = Literal["out-of-bounds", "misaligned", "race", "divergent-barrier", "uninitialised", "pending-copy",
                    "pending-read", "unfenced-write", "division-by-zero", "divergent-matrix-op", "endless-loop"]


class KernelFault(Exception):
    """A kernel did something that the hardware leaves undefined.

    Attributes:
        kind: what it did.
        where: the op's text and location.
        detail: which thread, which element.
    """

    def __init__(self, kind: FaultKind, where: str, detail: str) -> None:
        super().__init__(f"{kind}: {detail}\n  at {where}")
        self.kind = kind
        self.where = where
        self.detail = detail


@dataclass
class SharedSite:
    """Shared-memory traffic of one op: `accesses` warp accesses took `cycles`, at best `ideal`."""

    accesses: int = 0
    cycles: int = 0
    ideal: int = 0

    @property
    def conflict_ratio(self) -> float:
        """1.0 when no two lanes of an access wait for the same bank."""
        return self.cycles / self.ideal if self.ideal else 1.0


@dataclass
class Report:
    """What a run of one kernel saw.

    Attributes:
        shared_bytes: shared memory a workgroup allocated.
        ops: how often each op was executed, counted once for each batch of workgroups.
        sites: bank use of each shared-memory op, by the op's text.
        uninitialised: ops that read shared memory nobody wrote, with how many elements.
    """

    shared_bytes: int = 0
    ops: dict[str, int] = field(default_factory=dict)
    sites: dict[str, SharedSite] = field(default_factory=dict)
    uninitialised: dict[str, int] = field(default_factory=dict)

    def site(self, where: Callable[[], str] | str) -> SharedSite:
        key = where if isinstance(where, str) else where()
        return self.sites.setdefault(key, SharedSite())
