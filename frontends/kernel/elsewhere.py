"""Python's own exceptions in a kernel that is compiled, as errors at the line; names that other languages have, and
what is written here in their place."""

from __future__ import annotations

import difflib
from types import CodeType, ModuleType

from xcc.diagnostics import UserError
from xcc.frontends.kernel.place import error, raised_at
from xcc.frontends.kernel.transform import RUNTIME
from xcc.frontends.kernel.types import dtype_of

__all__ = ["STUMBLES", "located"]

STUMBLES = (AttributeError, NameError, TypeError, RecursionError)
"""What Python raises where a name, a function's arguments or a recursion is wrong; other exceptions are the user's."""

_METHODS = ("max", "min", "sum", "prod", "any", "all", "broadcast_to")
_ATOMICS = ("atomic_add", "atomic_max", "atomic_min", "atomic_and", "atomic_or", "atomic_xor", "atomic_xchg")
_ELSEWHERE = {name: f"t.{name}(...) is a method of tiles" for name in _METHODS} | {
    name: "arrays have .atomic_add, .atomic_max, .atomic_min and .atomic(kind, indices, tile)" for name in _ATOMICS} | {
    "associative_scan": "xcc.scan(t, axis, f)",
    "atomic_cas": "y.compare_swap(indices, expected, value)",
    "cat": "xcc.join(a, b).T.reshape(2 * n) puts tiles of n elements behind each other",
    "clamp": "xcc.minimum(xcc.maximum(t, a), b)",
    "cummin": "-xcc.cummax(-t)",
    "debug_barrier": "what one thread writes another reads behind a barrier as it is",
    "expand_dims": "t[:, None]",
    "flip": "x.gather(last - xcc.arange(n)) reads a block from its end",
    "fma": "a * b + c",
    "gather": "x.gather(indices) reads elements of an array, which a tile is stored in first",
    "histogram": "y.atomic_add(bins, 1)",
    "interleave": "xcc.join(a, b).reshape(2 * n)",
    "isnan": "t != t",
    "make_block_ptr": "x.tile(offsets, shape, other=) reads a block",
    "mean": "t.sum(axis) / n",
    "multiple_of": "sizes and strides are looked at as they are",
    "permute": "xcc.transpose(t, axes)",
    "pow": "t ** exponent",
    "ravel": "t.reshape(n)",
    "range": "range is a loop of the program, xcc.static_range is unrolled",
    "rint": "round(t)",
    "round": "round(t), of two integers alike near the even one",
    "softmax": "e = xcc.exp(t - t.max(axis, keepdims=True)), and e / e.sum(axis, keepdims=True)",
    "store": "y.store(offsets, tile) writes a block, y.scatter(indices, tile) elements",
    "trans": "t.T",
    "trunc": "xcc.where(t < 0, xcc.ceil(t), xcc.floor(t))",
    "view": "t.reshape(shape)",
    "xor_sum": "xcc.reduce(t, axis, lambda a, b: a ^ b)",
    "zeros_like": "xcc.zeros(t.shape, t.dtype)",
}


def located(found: Exception) -> UserError | None:
    """The error at the user's line for one of STUMBLES; None where a library's code raised it."""
    at: tuple[CodeType, int] | None = None
    files: set[str] = set()
    deep = isinstance(found, RecursionError)    # which any function may raise
    step = found.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        ours = step.tb_frame.f_globals.get("__name__", "").split(".")[0] == "xcc"
        if RUNTIME in code.co_freevars and not ours:
            files.add(code.co_filename)
        if code.co_filename in files:
            at = code, step.tb_lasti
        elif not deep and not ours:
            at = None
        step = step.tb_next
    return None if at is None else error(_what(found), raised_at(*at))


def _what(found: Exception) -> str:
    if isinstance(found, RecursionError):
        return "functions call each other without end: how often is known when the kernel runs, or never: write a loop"
    if isinstance(found, AttributeError) and isinstance(found.obj, ModuleType) and found.obj.__name__ == "xcc":
        return f"xcc has no {found.name}{_instead(found.name or '', found.obj)}"
    return str(found)


def _instead(name: str, module: ModuleType) -> str:
    if name in _ELSEWHERE:
        return f": {_ELSEWHERE[name]}"
    dtype = dtype_of(name)
    near = difflib.get_close_matches(name, module._LAZY, 1)
    return f": xcc.{dtype} is this type" if dtype is not None else f": is it xcc.{near[0]}?" if near else ""
