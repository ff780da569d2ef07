"""What a compiled model computes once, when it is loaded: kernels of weights alone.

``xt-fold`` computes at compile time what does not grow. What grows, the filters of Winograd's form for one, is stored
as it was and made larger by a kernel of the program's setup; but nothing of wider elements is, as whoever stores
weights in few bits wants them so in memory.
"""

from __future__ import annotations

from xcc import symbolic
from xcc._mlir import Module, Operation, Value, maker
from xcc.dialects import xt
from xcc.passes.walk import ops_where
from xcc.passes.xt.graph.op_graph import element_bytes
from xcc.passes.xt.graph.rewrite import name_of

VIEWS = ("reshape", "bitcast")
MOST = 8        # times the bytes of the operands; what is larger is made in each run, when it is wanted, in the arena


def view_root(value: Value) -> Value:
    """The value whose bytes `value` shows."""
    while (owner := maker(value)) is not None and name_of(owner) in VIEWS:
        value = owner.operands[0]
    return value


def made_at_load(module: Module) -> frozenset[Operation]:
    """The dispatches of `module`, at stage ``kernels``, that run once, when the model is loaded: their kernels read
    nothing but weights, at least one, and what such kernels have made, and make at most MOST times as many bytes."""
    found: set[Operation] = set()
    for op in ops_where(module, lambda op: name_of(op) == "dispatch"):   # what makes an operand comes before its use
        if _is_small(op) and _reads_what_is_fixed(op, found):
            found.add(op)
    return frozenset(found)


def _is_small(dispatch: Operation) -> bool:
    """Whether the sizes of all that `dispatch` reads and makes are known, and it makes at most MOST times as much.

    No more than it reads where its elements are wider than those it reads: narrow weights stay narrow in memory.
    """
    if "xt.binds" in dispatch.attributes or "xt.in_place" in dispatch.attributes or len(xt.attrs_of(dispatch).symbols):
        return False
    read, made = (sum((symbolic.product(xt.shape_of(v)) * element_bytes(v) for v in values), 0)
                  for values in (dispatch.operands, dispatch.results))
    if not isinstance(read, int) or not isinstance(made, int):
        return False
    narrowest = min((element_bytes(v) for v in dispatch.operands if symbolic.product(xt.shape_of(v)) != 1), default=8)
    return made <= (read if any(element_bytes(v) > narrowest for v in dispatch.results) else MOST * read)


def _reads_what_is_fixed(dispatch: Operation, made: set[Operation]) -> bool:
    makers = [maker(view_root(v)) for v in dispatch.operands]
    fixed = [m is not None and (name_of(m) in ("weight", "constant") or m in made) for m in makers]
    return all(fixed) and any(m is not None and name_of(m) != "constant" for m in makers)
