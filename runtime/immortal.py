"""Objects that are kept until the process is gone, its end included."""

from __future__ import annotations

import ctypes

__all__ = ["keep_forever"]

_KEPT: list[object] = []
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_KEPT))     # the interpreter lets go of a module's names when it ends


def keep_forever(*objects: object) -> None:
    """Never calls the destructors of `objects`: one would wait for what may not come, or free what is written to."""
    _KEPT.extend(objects)
