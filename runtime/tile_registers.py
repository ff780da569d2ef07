"""Leave to use AMX's tile registers: Linux gives a process their 8 KiB of state only when it asks."""

from __future__ import annotations

import ctypes
import platform
import sys
from functools import lru_cache

__all__ = ["allow_tiles"]

_ARCH_PRCTL = 158               # system call of x86-64
_REQUEST_PERMISSION = 0x1023    # ARCH_REQ_XCOMP_PERM
_TILE_DATA = 18                 # XFEATURE_XTILEDATA


@lru_cache(maxsize=1)
def allow_tiles() -> bool:
    """Asks for all threads of this process; whether it may use them."""
    if not sys.platform.startswith("linux") or platform.machine() != "x86_64":
        return False
    call = ctypes.CDLL(None).syscall
    call.restype = ctypes.c_long
    return bool(call(ctypes.c_long(_ARCH_PRCTL), ctypes.c_long(_REQUEST_PERMISSION), ctypes.c_long(_TILE_DATA)) == 0)
