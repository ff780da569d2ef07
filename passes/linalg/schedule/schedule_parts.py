"""What of a schedule only some targets have (`cpu`, `gpu` of schedule.py here), and records as attributes."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from typing import Any

from xcc._mlir import Attribute, ir
from xcc.diagnostics import UserError


@dataclass(frozen=True)
class Kept:
    """How a chunk computes what it keeps of the result of op number `op`."""

    op: int
    vector: tuple[int, ...]
    order: tuple[int, ...]


@dataclass(frozen=True)
class CpuPart:
    """What one core does with its chunks:

    - dot: the lanes of the contraction's reduction loop are elements that one dot product instruction sums: they make a
      vector.contract even where only one operand walks the result's lanes.
    - along: a product's lanes go along its sum, an accumulator of them for each result, and are added up in the end.
    - prefetch: in the loop over a product's packed operand, how many rows of a panel ahead of the one being read to
      fetch; the rows of the next panel follow those of this one. 0: none.
    - shares: each tile of rows of a panel asks for 1 / shares (a power of two) of the next panel
      (passes/linalg/evaluate/fetch_ahead.py); 0: none does.
    - strips: the contraction's tile of the main result goes to a buffer on the stack, from where the rest of the kernel
      is computed in strips of so many rows: for tiles of more accumulators than vector registers hold; 0: it stays.
    - parts: the chunks of a matrix's rows are dealt out to so many parts, of which each walks the chunks of columns and
      in each of them its rows: threads that have a part each read the same columns at about the same time. 0: no parts.
    - depth: the contraction's loop is walked in blocks of so many steps, outside the loops over tiles of a chunk, with
      `parts` outside those over chunks; sums wait in the result's buffer between them
      (passes/linalg/evaluate/depth_blocks.py). 0: in one go.
    - staged: the rows of a product's left operand that a chunk (and a block of depth) needs are copied together
      (packed) on the stack, along the loops of its first panel's tiles (passes/linalg/evaluate/staged_rows.py).
    - columns: the panel of a product's right operand that a chunk's tiles of rows multiply is copied (packed) to the
      stack before them (passes/linalg/nests/packed_columns.py).
    - decoded: the panel of a product's right operand that is decoded (dequantised) is written to the stack, once for
      all tiles of rows of a chunk, where it has several (passes/linalg/nests/decoded_panels.py).
    - ahead: at each stored tile, how many elements further on the arguments that lie as the result does are fetched
      into the cache; 0: none.
    - stream: the largest result is written past the caches (non-temporal stores), where its buffer begins at a vector's
      alignment.
    - kept: values that each chunk computes before its tiles, into memory of its own (passes/linalg/evaluate/keep.py):
      the op's number, and vector and order of the nest that computes it, over the op's result dims.
    - park: the number of an op whose result a reduction over a row and the kernel's result both need and which is dear
      to compute twice: it is written to the result's own row by the first and read back by the second. -1: none.
    """

    dot: bool = False
    along: bool = False
    prefetch: int = 0
    shares: int = 0
    strips: int = 0
    parts: int = 0
    depth: int = 0
    staged: bool = False
    columns: bool = False
    decoded: bool = False
    ahead: int = 0
    stream: bool = False
    kept: tuple[Kept, ...] = ()
    park: int = -1

    def __post_init__(self) -> None:
        if self.shares < 0 or self.shares & (self.shares - 1):
            raise UserError(f"xcc.config: shares {self.shares} is no power of two")


@dataclass(frozen=True)
class GpuPart:
    """What a workgroup does with its tile:

    - threads: workgroup size.
    - stages: tiles of a contraction's operands that are in shared memory at once, loads running ahead of the compute
      (software pipelining; 2: double buffering); below 2: none.
    - warpgroup: contractions by instructions that several warps issue together and that read shared memory themselves
      (wgmma), where the chip has them for these types and the tile fits.
    - group: tiles of the last dim but one that neighbouring workgroups walk before they go on along the last, for the
      L2 cache (GROUP_SIZE_M of Triton's tutorial).
    - persistent: how many workgroups compute all tiles, one after the other (passes/gpu/pipeline/rounds.py); 0: each
      one tile.
    - streamed: (tiles, workers), stream-K: the sums of the last tiles, in the order of launch, are dealt out to so many
      workgroups (``stream-k``); empty: every tile is one workgroup's.
    - splits: in how many parts, of blocks of their own, an online loop is cut at most (flash decoding); a second nest
      merges what they leave (passes/linalg/evaluate/online_parts.py). Without `online` each reduction is cut
      (passes/linalg/evaluate/row_parts.py). Below 2: none.
    - busy: where the number of tiles is not known, that of blocks from which on more parts gain nothing.
    - beside: neighbours along the tile's last dim but one, and those before it, that a thread reads and computes, each
      as wide as one access: what their windows share is read once. 1: as the layout comes.
    """

    threads: int = 0
    stages: int = 0
    warpgroup: bool = False
    group: int = 0
    persistent: int = 0
    streamed: tuple[int, ...] = ()
    splits: int = 0
    busy: int = 0
    beside: int = 1


def entries_of(record: Any, always: tuple[str, ...] = ()) -> dict[str, Attribute]:
    """The fields of `record` that are not their defaults, and those that are written `always`, as attributes."""
    return {f.name: _attr(getattr(record, f.name), str(f.type)) for f in fields(record)
            if f.name in always or f.default is MISSING or getattr(record, f.name) != f.default}


def values_of(cls: type[Any], attr: Attribute) -> dict[str, Any]:
    """The fields of `cls` in a dictionary attribute; UserError for an entry that is wrong or not among them."""
    entries, kinds = ir.DictAttr(attr), {f.name: str(f.type) for f in fields(cls)}
    found = {entries[n].name: entries[n].attr for n in range(len(entries))}
    for name in found:
        if name not in kinds:
            home = [part for part, other in PARTS.items() if name in {f.name for f in fields(other)}]
            hint = f"; it is one of {home[0]} = {{...}}" if home else f"; there are {', '.join(kinds)}"
            raise UserError(f"xcc.config: there is no entry '{name}' here{hint}")
    try:
        return {name: _value(a, kinds[name]) for name, a in found.items()}
    except (TypeError, ValueError) as e:
        raise UserError(f"xcc.config: {e}") from None


PARTS: dict[str, type[Any]] = {"cpu": CpuPart, "gpu": GpuPart}
_RECORDS: dict[str, type[Any]] = {"CpuPart": CpuPart, "GpuPart": GpuPart, "Kept": Kept}
_INTEGERS = "tuple[int, ...]"


def _attr(value: Any, kind: str) -> Attribute:
    """The attribute of a field of type `kind`."""
    if kind == _INTEGERS:
        return ir.DenseI64ArrayAttr.get(list(value))
    if kind.startswith("tuple["):
        return ir.ArrayAttr.get([_attr(v, _inner(kind)) for v in value])
    if kind in _RECORDS:
        return ir.DictAttr.get(entries_of(value))
    if kind == "int":
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
    return ir.BoolAttr.get(value) if kind == "bool" else ir.StringAttr.get(value)


def _value(attr: Attribute, kind: str) -> Any:
    """What :func:`_attr` made `attr` of."""
    if kind == _INTEGERS:
        return tuple(ir.DenseI64ArrayAttr(attr))
    if kind.startswith("tuple["):
        return tuple(_value(a, _inner(kind)) for a in ir.ArrayAttr(attr))
    if kind in _RECORDS:
        return _RECORDS[kind](**values_of(_RECORDS[kind], attr))
    return {"bool": ir.BoolAttr, "int": ir.IntegerAttr, "str": ir.StringAttr}[kind](attr).value


def _inner(kind: str) -> str:
    """``X`` of ``tuple[X, ...]``."""
    return kind.removeprefix("tuple[").removesuffix(", ...]")
