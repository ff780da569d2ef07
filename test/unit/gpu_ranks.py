"""Ranks that are threads of this process, each with an executor on a GPU that is host memory and NCCL between them."""

from __future__ import annotations

import socket
import threading
import uuid
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from fake_nccl import FakeNccl
from host_driver import HostDriver, add_one

from xcc.diagnostics import UserError
from xcc.runtime import nccl
from xcc.runtime.gpu_executor import GpuExecutor
from xcc.runtime.launcher import Place
from xcc.runtime.mesh import Mesh
from xcc.runtime.nccl import Nccl, NcclError
from xcc.runtime.program import Collective, Program
from xcc.runtime.world import World


class Gpu(HostDriver):
    """One of NVIDIA's."""

    prefix = "cu"


def installed(monkeypatch: pytest.MonkeyPatch) -> FakeNccl:
    """A library that is found."""
    made = FakeNccl()
    monkeypatch.setattr(nccl, "library", lambda prefix: made)
    monkeypatch.setattr(nccl, "_WATCH", 0.05)
    return made


def ranks(fake: FakeNccl, program: Program, mesh: Mesh, work: Callable[[Any], Any], gpu: Any = Gpu,
          kernels: Mapping[str, Any] = {}) -> list[Any]:
    """What `work` gives for each rank, of which it gets executor, driver, world and number; errors as results."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    job = uuid.uuid4().hex      # another test may find the same port
    groups = sorted({s.axes for s in program.body if isinstance(s, Collective)})
    out: list[Any] = [None] * mesh.size
    kept: list[Any] = []        # until all have ended: others may still write to the memory of one that fails

    def one(rank: int) -> None:
        driver = fake.local.driver = gpu({"add_one": add_one, **kernels})
        try:
            world = World(Place(rank, mesh.size, rank, mesh.size, "127.0.0.1", port, job), seconds=240)
            given = SimpleNamespace(
                run=GpuExecutor(driver, program, [b"module"], {}, dict.fromkeys(kernels, 0),
                                Nccl(driver, world, mesh, groups)),
                driver=driver, world=world, rank=rank)
            kept.append(given)
            out[rank] = work(given)
        except BaseException as e:
            out[rank] = e.with_traceback(None)      # which holds the executor
            if not isinstance(e, (UserError, NcclError, threading.BrokenBarrierError)):
                world.fail(repr(e))

    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(mesh.size)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return out
