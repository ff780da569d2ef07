"""Who stops a compilation stops all of its processes, at once."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

MODEL = """
func.func @main(%x: tensor<8xf32> {xt.name = "x"}) -> (tensor<8xf32> {xt.name = "y"}) {
  %0 = "xt.add"(%x, %x) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
HANGS = 600.0       # seconds after which nothing more will happen
IN_A_KERNEL = "kernels: form-kernels; linalg: test-fail{how=hang}"
IN_A_STAGE = "xt: mlir(cse); kernels: test-fail{how=hang}"
AT_A_FORK = """
import os, signal, sys, time
from xcc.process.fork_guard import fork_guard

def fork(real=os.fork):
    child = real()
    if child:
        os.killpg(0, signal.SIGINT)
    return child

os.fork = fork
try:
    fork_guard()
    time.sleep(600)
except KeyboardInterrupt:
    sys.stderr.write("stopped")
    sys.exit(130)
"""
API = "import sys, xcc; from xcc.passes.pipeline import Pipeline\n"\
      "xcc.compile(sys.argv[1], pipeline=Pipeline.parse(sys.argv[2]))"


def processes(mark: str) -> list[int]:
    """The processes, zombies left out, that have `mark` in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes() and b"\nState:\tZ" not in (
                    folder / "status").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def wait_until(true: Callable[[], bool]) -> bool:
    """Waits for what happens at last, however slow the machine is; False when it hangs."""
    end = time.monotonic() + HANGS
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def status_of(process: subprocess.Popen[bytes]) -> int | None:
    wait_until(lambda: process.poll() is not None)
    return process.returncode


def ignores_interrupts(pid: int) -> bool:
    mask = next(line.split()[1] for line in Path(f"/proc/{pid}/status").read_text().splitlines()
                if line.startswith("SigIgn:"))
    return bool(int(mask, 16) >> (signal.SIGINT - 1) & 1)


@contextlib.contextmanager
def started(folder: Path, argv: list[str], on_interrupt: signal.Handlers = signal.SIG_DFL
            ) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A process of its own session, and the mark of all that it starts; none outlives the block.

    `on_interrupt` is what SIGINT does to it, whatever it does to the tests: nohup and a shell's & ignore it."""
    (folder / "m.mlir").write_text(MODEL)
    environment = {**os.environ, "XCC_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": os.pathsep.join(sys.path)}
    mark = f"XCC_CACHE_DIR={folder / 'cache'}"
    process = subprocess.Popen([sys.executable, *argv], cwd=folder, env=environment, stderr=subprocess.PIPE,
                               start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGINT, on_interrupt))
    try:
        yield process, mark
    finally:
        for pid in processes(mark):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.communicate()


@pytest.mark.parametrize(("send", "group", "status"), [
    (signal.SIGINT, True, 130), (signal.SIGINT, False, 130), (signal.SIGTERM, False, -15), (signal.SIGKILL, False, -9)])
@pytest.mark.parametrize(("pipeline", "members"), [(IN_A_KERNEL, 3), (IN_A_STAGE, 2)], ids=["kernel", "stage"])
def test_of_the_command_line(tmp_path: Path, send: signal.Signals, group: bool, status: int, pipeline: str,
                             members: int) -> None:
    with started(tmp_path, ["-m", "xcc.tools.xcc_cli", "m.mlir", f"--pipeline={pipeline}"]) as (p, mark):
        assert wait_until(lambda: len(processes(mark)) >= members), processes(mark)
        (os.killpg if group else os.kill)(p.pid, send)
        assert status_of(p) == status
        assert wait_until(lambda: not processes(mark)), processes(mark)
        assert p.stderr
        if send == signal.SIGINT:
            assert p.stderr.read() == b"xcc: stopped: interrupted\n"
    assert not list((tmp_path / "cache").rglob("*.mlir"))       # no reproducer: nothing failed


@pytest.mark.parametrize(("send", "tests_ignore"), [(signal.SIGINT, False), (signal.SIGINT, True),
                                                    (signal.SIGKILL, False)])
def test_of_a_program(tmp_path: Path, send: signal.Signals, tests_ignore: bool, request: pytest.FixtureRequest) -> None:
    if tests_ignore:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    with started(tmp_path, ["-c", API, "m.mlir", IN_A_KERNEL]) as (p, mark):
        assert wait_until(lambda: len(processes(mark)) >= 4), processes(mark)
        p.send_signal(send)
        assert status_of(p) == -send
        assert wait_until(lambda: not processes(mark)), processes(mark)
    assert not [f for f in (tmp_path / "cache").rglob("*") if f.is_file()]


def test_at_a_fork(tmp_path: Path) -> None:
    """Neither process knows yet what to do: one of them, not both, stops the work."""
    for _ in range(3):
        with started(tmp_path, ["-c", AT_A_FORK]) as (p, mark):
            assert p.stderr and (status_of(p), p.stderr.read()) == (130, b"stopped")
            assert not processes(mark)


def test_who_ignores_interrupts_goes_on(tmp_path: Path) -> None:
    argv = ["-m", "xcc.tools.xcc_cli", "m.mlir", f"--pipeline={IN_A_KERNEL}"]
    with started(tmp_path, argv, on_interrupt=signal.SIG_IGN) as (p, mark):
        assert wait_until(lambda: len(processes(mark)) >= 3), processes(mark)
        assert all(map(ignores_interrupts, processes(mark)))    # so that the system drops one as it is sent
        os.killpg(p.pid, signal.SIGINT)
        assert p.poll() is None and len(processes(mark)) >= 3
