"""What a compiled model computes once, when it is loaded: kernels of weights alone.

``xt-fold`` computes at compile time what does not grow. What grows, the filters of Winograd's form for one, is stored
as it was and made larger by a kernel of the program's setup.
"""

from __future__ import annotations

from typing import Any

from xcc import symbolic
from xcc.dialects import xt
from xcc.passes.xt.op_graph import element_bytes, short_name

__all__ = ["VIEWS", "at_load", "view_root"]

VIEWS = ("reshape", "bitcast")
MOST = 8        # times the bytes of the operands; what is larger is made in each run, when it is wanted, in the arena


def view_root(value: Any) -> Any:
    """The value whose bytes `value` shows."""
    while (owner := _owner(value)) is not None and short_name(owner) in VIEWS:
        value = owner.operands[0]
    return value


def at_load(dispatch: Any) -> bool:
    """Whether the kernel that the op `dispatch` of stage ``kernels`` calls reads nothing but weights, at least one, and
    what such kernels have made, and makes at most MOST times as many bytes."""
    if "xt.binds" in dispatch.attributes or len(xt.attrs_of(dispatch).symbols):
        return False
    makers = [_owner(view_root(v)) for v in dispatch.operands]
    sizes = [symbolic.product(xt.shape_of(v)) * element_bytes(v) for v in (*dispatch.operands, *dispatch.results)]
    if any(m is None for m in makers) or not symbolic.is_static(sizes):
        return False
    read, made = (sum(n for n in part if isinstance(n, int)) for part in (sizes[:len(makers)], sizes[len(makers):]))
    return made <= MOST * read and any(short_name(m) != "constant" for m in makers) and all(map(_is_fixed, makers))


def _is_fixed(op: Any) -> bool:
    return short_name(op) in ("weight", "constant") or short_name(op) == "dispatch" and at_load(op)


def _owner(value: Any) -> Any:
    """The operation that makes `value`; None for a block argument."""
    return getattr(value.owner, "operation", None)
