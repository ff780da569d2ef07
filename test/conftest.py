"""Property tests draw the same examples in each run, and have no deadline: the machine may be busy."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("xcc", derandomize=True, deadline=None, database=None)
settings.load_profile("xcc")
