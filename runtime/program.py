"""The host program of a compiled model: plain data, stored as JSON in the artifact.

Dims are ints or :class:`xcc.symbolic.Expr`; in JSON an Expr is its text. Statements refer to buffers by
index into ``Program.buffers``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Union

from xcc import symbolic
from xcc.symbolic import Dim

BufferKind = Literal["input", "output", "weight", "kept", "state", "temp", "alias"]

CollectiveKind = Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "permute", "broadcast"]
Combine = Literal["", "add", "max", "min", "mul"]

DTYPE_BYTES: dict[str, int] = {
    "f64": 8, "f32": 4, "f16": 2, "bf16": 2, "f8E4M3FN": 1, "f8E5M2": 1, "f8E4M3FNUZ": 1,
    "f8E5M2FNUZ": 1, "f8E8M0FNU": 1, "f4E2M1FN": 1, "i1": 1, "i2": 1, "i4": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8,
    "ui2": 1, "ui4": 1, "ui8": 1, "ui16": 2, "ui32": 4, "ui64": 8}
"""Bytes of an element in memory. i1 is a byte 0 or 1; types of 2 and 4 bits take the low bits of a byte each."""


COMBINED_TYPES = ("f64", "f32", "f16", "bf16", "i8", "i32", "i64", "ui8", "i1")
"""The element types that collectives add, multiply or compare: those that all libraries of collectives have."""

VALUE_TYPES = ("i8", "i16", "i32", "i64", "ui8", "ui16", "ui32")
"""The element types of inputs whose values may be symbols: those that an i64 holds."""


@dataclass(frozen=True)
class Buffer:
    """A contiguous row-major array.

    kind: "input"/"output" (name is the model's), "weight" (name is its key in the weight file), "kept" (static, made
    from weights when the model is loaded, stays as long as it), "state" (static, what a run leaves there the next one
    finds; see State), "temp" (lives in the arena), "alias" (the bytes of buffer `base` from `offset`, seen with another
    shape).
    dtype: a key of DTYPE_BYTES. `offset` is in bytes and may use the counter of an enclosing For.
    """

    kind: BufferKind
    shape: tuple[Dim, ...]
    dtype: str
    name: str = ""
    base: int = -1
    offset: Dim = 0


@dataclass(frozen=True)
class Launch:
    """Runs a kernel: buffers in ABI order (inputs then outputs), then the symbols' values.

    `grid` (workgroups x, y, z), `block` (threads) and `shared_bytes` are for GPUs; empty for CPUs. `early`: the kernel
    waits for the launch before it by itself, so that it may be placed on the device earlier.
    """

    kernel: str
    buffers: tuple[int, ...]
    symbols: tuple[Dim, ...]
    grid: tuple[Dim, ...] = ()
    block: tuple[int, ...] = ()
    shared_bytes: int = 0
    early: bool = False


@dataclass(frozen=True)
class Copy:
    """Copies the whole of buffer `source` to `target` (same bytes)."""

    source: int
    target: int


@dataclass(frozen=True)
class SetScalar:
    """Writes the value of `value` into the one-element integer or float buffer `target` (or dims into a vector)."""

    target: int
    values: tuple[Dim, ...]


@dataclass(frozen=True)
class BindSymbol:
    """Defines the symbol `name` at run time as the integer in element `index` of buffer `source`.

    It never exceeds `limit` (over symbols bound before): buffers whose shape uses it get room for `limit`.
    """

    name: str
    source: int
    index: int = 0
    limit: Dim = 0


@dataclass(frozen=True)
class InputValue:
    """The symbol `name` is the integer in element `index` of the input buffer `source`, known before the run."""

    name: str
    source: int
    index: int = 0


@dataclass(frozen=True)
class State:
    """The model holds `buffer`, called `name`, from run to run. It begins as the weight `initial`, as zeros for ""."""

    name: str
    buffer: int
    initial: str = ""


@dataclass(frozen=True)
class Require:
    """Ends the run with a UserError unless `left` and `right` are equal, which what follows relies on.

    `message` says where; two numbers always fail, and then it is the whole error.
    """

    left: Dim
    right: Dim
    message: str


@dataclass(frozen=True)
class If:
    """Runs `then` when the one-element buffer `condition` is not zero, else `orelse`."""

    condition: int
    then: tuple[Statement, ...]
    orelse: tuple[Statement, ...]


@dataclass(frozen=True)
class While:
    """Runs `before`, reads `condition`, runs `body`, again while it is not zero."""

    before: tuple[Statement, ...]
    condition: int
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class For:
    """Runs `body` with the symbol `counter` = 0 .. trips-1 bound. (scan: slices are aliases whose offset uses it.)"""

    counter: str
    trips: Dim
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class Collective:
    """Communicates among the ranks that differ in the coordinates of `axes` only, the group, in the order of its ranks.

    Buffers are of one element type. `combine` says how all_reduce and reduce_scatter put elements together, which are
    of a type in COMBINED_TYPES; i1 only has max and min. The target
    of all_gather holds the sources one behind the other; the source of reduce_scatter and all_to_all is as many equal
    parts as there are ranks: a rank gets its part of the result, or part i goes to place i and the target holds what
    came, in order. permute sends from the first to the second place of each pair, and who gets nothing has zeros;
    `root` is the place whose source broadcast gives to all. Source and target of all_reduce and broadcast may be one.
    """

    kind: CollectiveKind
    source: int
    target: int
    axes: tuple[str, ...]
    combine: Combine = ""
    pairs: tuple[tuple[int, int], ...] = ()
    root: int = 0


Statement = Union[Launch, Copy, SetScalar, BindSymbol, Require, Collective, If, While, For]


@dataclass(frozen=True)
class Program:
    """`symbols` names every symbol bound from inputs, in order; `bounds` gives (low, high) where declared.

    `values` says which of them are elements of inputs; the others are sizes of inputs.
    `equal` holds pairs of dims over them which the kernels take to be equal. `setup` runs once, before the first run:
    its launches read weights and kept buffers, and write kept buffers.
    `updates` has (output, input) for each output that takes an input's place: it is an alias of that input's buffer,
    with a name. `states` are buffers of kind "state", each once.
    """

    buffers: tuple[Buffer, ...]
    body: tuple[Statement, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    symbols: tuple[str, ...] = ()
    bounds: dict[str, tuple[int, int]] = field(default_factory=dict)
    equal: tuple[tuple[Dim, ...], ...] = ()
    setup: tuple[Launch, ...] = ()
    values: tuple[InputValue, ...] = ()
    updates: tuple[tuple[int, int], ...] = ()
    states: tuple[State, ...] = ()

    def nbytes(self, buffer: int) -> Dim:
        """The size of `buffer` in bytes."""
        b = self.buffers[buffer]
        return symbolic.product(b.shape) * DTYPE_BYTES[b.dtype]

    def weight_names(self) -> list[str]:
        """The weights that it needs."""
        return [b.name for b in self.buffers if b.kind == "weight"] + [s.initial for s in self.states if s.initial]

    def root(self, buffer: int) -> int:
        """The buffer that holds the bytes of `buffer`: itself, or what its chain of aliases ends at."""
        while self.buffers[buffer].kind == "alias":
            buffer = self.buffers[buffer].base
        return buffer


def expanded(body: Iterable[Statement], expand: Callable[[Statement], Iterable[Statement]]) -> tuple[Statement, ...]:
    """`body` with `expand` of each statement in its place, in branches and loops, too, which stay."""
    out: list[Statement] = []
    for s in body:
        if isinstance(s, If):
            out.append(replace(s, then=expanded(s.then, expand), orelse=expanded(s.orelse, expand)))
        elif isinstance(s, While):
            out.append(replace(s, before=expanded(s.before, expand), body=expanded(s.body, expand)))
        elif isinstance(s, For):
            out.append(replace(s, body=expanded(s.body, expand)))
        else:
            out += expand(s)
    return tuple(out)


TAGS: dict[str, type] = {
    c.__name__: c for c in (Launch, Copy, SetScalar, BindSymbol, Require, Collective, If, While, For)}


def to_json(value: Any) -> Any:
    """`value` as JSON data; statements become ``{"op": "Launch", ...}``."""
    if isinstance(value, symbolic.Expr):
        return str(value)
    if isinstance(value, (tuple, list)):
        return [to_json(v) for v in value]
    if isinstance(value, dict):
        return {k: to_json(v) for k, v in value.items()}
    if hasattr(value, "__dataclass_fields__"):
        out = {k: to_json(getattr(value, k)) for k in value.__dataclass_fields__}
        return {"op": type(value).__name__, **out} if type(value).__name__ in TAGS else out
    return value
