"""Property tests draw the same examples in each run, and have no deadline: the machine may be busy.

The tests of modules marked ``early`` come first: what they share takes long to make, and workers, who take tests of one
another's only at the end, would make it twice there.

Under a pretended host (``XCC_PRETENDED_HOST``) a test that comes to run code which this machine has no instructions for
is skipped there: such hosts are for looking at what is compiled.

Models compile in the process of the test, but in the tests of the folders `APART` and of modules marked ``apart``,
which are about the processes that compile, errors or the cache, and of GPU kernels that are interpreted LLVM makes code
of one in three (e2e/in_process.py).
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings
from in_process import stand_ins

from xcc.diagnostics import UserError

settings.register_profile("xcc", derandomize=True, deadline=None, database=None)
settings.load_profile("xcc")

APART = ("test/unit/benchmarks", "test/unit/cache", "test/unit/driver", "test/unit/process")


@pytest.fixture(autouse=True, scope="module")
def compile_here(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if not (request.node.nodeid.startswith(APART) or request.node.get_closest_marker("apart")):
            for place, stand_in in stand_ins().items():
                patch.setattr(place, stand_in)
        yield


def _skipped_where_refused() -> Iterator[None]:
    outcome: Any = yield
    error = outcome.excinfo and outcome.excinfo[1]
    if os.environ.get("XCC_PRETENDED_HOST") and isinstance(error, UserError) and "this CPU lacks " in error.message:
        outcome.force_exception(pytest.skip.Exception(f"code of the pretended host: {error}"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("early") is None)


def pytest_collection_finish() -> None:
    """What is loaded by now lives as long as the process: the collector need not look at it in each test."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20000)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_setup() -> Iterator[None]:
    yield from _skipped_where_refused()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    yield from _skipped_where_refused()
