"""The address of a global memory access as a part that a workgroup shares, or at least a wave, and a part of each lane.

What was found of values is kept in a dict of theirs, `known`. One with ``known[WAVE]``, the lanes of a wave, counts as
shared what all lanes of a wave have: the number of the wave in its workgroup.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xcc._mlir import Block, Operation, Value, arith_d, ir, maker, memref_d, parent_op
from xcc.passes.gpu.index.upper_bounds import largest
from xcc.passes.gpu.layout.tile_ops import element_bytes
from xcc.passes.shared.patterns import int_constant
from xcc.passes.shared.values import index

LIMIT = 1 << 31         # bytes that a lane's part may reach
ACCESSES = ("vector.load", "vector.store", "memref.load", "memref.store")
WAVE = "wave"
VIEWS = ("memref.collapse_shape", "memref.expand_shape", "memref.cast", "memref.reinterpret_cast")
Terms = dict[Any, int]  # value -> factor; None -> a constant
Term = tuple[Any, list[int], int]   # value (None: 1), dims whose sizes are factors, constant factor


@dataclass(frozen=True)
class LanePart:
    """What a lane adds to one index of an access.

    Attributes:
        terms: its sum; the constant part is the same in all lanes.
        stride: elements between neighbours along this dim; 0 where sizes that are not known are a factor of it.
        reach: the largest value of the sum; -1 where it may be below 0.
    """

    terms: Terms
    stride: int
    reach: int


@dataclass
class Address:
    """Element `uniform() + lane()` of the array that `memref` points to.

    Attributes:
        view: the memref that is accessed, of the same array.
        shared, own: the terms of either part.
        dims: what `own` consists of, by index, where it is known to be below 2 GiB; else empty.
        by_wave: values of `shared` that are not the same in the whole workgroup.
    """

    memref: Value
    view: Value
    shared: list[Term]
    own: list[Term]
    dims: list[LanePart]
    by_wave: frozenset[Value] = frozenset()

    def uniform(self) -> Value:
        """The part that a workgroup shares, built at the insertion point."""
        return self._sum(self.shared)

    def lane(self, on: Value | None, beyond: int) -> Value:
        """The part of a lane, built at the insertion point; from `beyond` on where the condition `on` is false."""
        if on is None:
            return self._sum(self.own)
        fixed = sum(n for v, dims, n in self.own if v is None and not dims)     # which the instruction adds
        if fixed <= 0:
            return arith_d.select(on, self._sum(self.own), index(beyond))
        varying = self._sum([t for t in self.own if t[0] is not None or t[1]])
        return arith_d.addi(arith_d.select(on, varying, index(beyond)), index(fixed))

    def _sum(self, terms: list[Term]) -> Value:
        total = None
        for value, dims, scale in terms:
            term = index(1) if value is None else _of_first_lane(value) if value in self.by_wave else _as_index(value)
            term = term if scale == 1 else arith_d.muli(term, index(scale))
            for d in dims:
                term = arith_d.muli(term, memref_d.dim(self.view, index(d)))
            total = term if total is None else arith_d.addi(total, term)
        return index(0) if total is None else total


def _as_index(value: Value) -> Value:
    kind = ir.IndexType.get()
    return value if value.type == kind else arith_d.index_cast(kind, value)


def _of_first_lane(value: Value) -> Value:
    """`value`, which is the same in all lanes and below 2^31, as a scalar."""
    i32 = ir.IntegerType.get_signless(32)
    narrow = arith_d.index_cast(i32, value) if value.type == ir.IndexType.get() else value
    return _as_index(ir.Operation.create("rocdl.readfirstlane", results=[i32], operands=[narrow]).result)


def is_memory_access(op: Operation) -> bool:
    """Whether `op` is a load or store of a memref without a memory space."""
    if op.name not in ACCESSES:
        return False
    return ir.MemRefType(_memref(op).type).memory_space is None


def _memref(op: Operation) -> Value:
    return op.operands[1 if op.name.endswith(".store") else 0]


def address_of(op: Operation, entry: Block, known: dict[Any, int]) -> Address | None:
    """The address of the access `op` of a kernel with entry block `entry`.

    None when the memory is not one of the kernel's buffers, or a lane's part is not known to be below 2 GiB, or when
    there is no such part. `known` keeps what was found of values.
    """
    memref = _memref(op)
    root = memref
    while (origin := maker(root)) is not None and origin.name in VIEWS:
        if not _contiguous(root):
            return None
        root = origin.operands[0]
    if origin is not None or root.owner != entry or not _contiguous(memref):
        return None
    t = ir.MemRefType(memref.type)
    indices = list(op.operands)[2 if op.name.endswith(".store") else 1:]
    size = element_bytes(t.element_type)
    sizes = list(t.shape)
    whole = size
    for s in sizes:
        whole = whole * s if s >= 0 and whole else 0
    small = 0 < whole < LIMIT
    shared: list[Term] = []
    own: list[Term] = []
    dims: list[LanePart] = []
    reach, fixed, bounded = 0, 0, True
    for d, value in enumerate(indices):
        terms: Terms = {}
        _linear(value, 1, terms)
        stride, dynamic = 1, []
        for inner in range(d + 1, len(sizes)):
            if sizes[inner] >= 0:
                stride *= sizes[inner]
            else:
                dynamic.append(inner)
        here = 0
        for v, factor in terms.items():
            if v is None and not dynamic:
                fixed += factor * stride
            elif v is None or not _by_lane(v, known):
                shared.append((v, dynamic, factor * stride))
            else:
                most = largest(v, known)
                bounded &= most is not None and factor > 0 and not dynamic
                reach += (most or 0) * factor * stride
                here += (most or 0) * factor
                own.append((v, dynamic, factor * stride))
        lanes = lane_terms(terms, known)
        dims.append(LanePart(lanes, 0 if dynamic else stride,
                             -1 if lanes.get(None, 0) < 0 else here + lanes.get(None, 0)))
    bounded &= (reach + max(0, fixed)) * size + 16 < LIMIT
    if not own or not bounded and not small:
        return None
    if fixed:
        (own if fixed > 0 or not bounded else shared).append((None, [], fixed))
    if not bounded:         # the sum is inside the array, whatever its parts are
        return Address(root, memref, [], own + shared, [])
    values = {v for v, _, _ in shared if v is not None} if WAVE in known else set()
    by_wave = frozenset(v for v in values if _by_lane(v, {}))
    limits = [largest(v, known) for v in by_wave]
    if any(n is None or n >= LIMIT for n in limits):
        return None
    return Address(root, memref, shared, own, dims if fixed >= 0 else [], by_wave)


def lane_terms(terms: Terms, known: dict[Any, int]) -> Terms:
    """Those of `terms` that differ by lane, and the constant one."""
    return {v: factor for v, factor in terms.items() if factor and (v is None or _by_lane(v, known))}


def same_in_workgroup(value: Value, known: dict[Any, int]) -> bool:
    """Whether all threads of a workgroup hold the same value."""
    return not _by_lane(value, known)


def linear_terms(value: Value) -> Terms:
    """`value` as a sum of values times constants."""
    terms: Terms = {}
    _linear(value, 1, terms)
    return terms


def _contiguous(memref: Value) -> bool:
    """Whether a memref is row-major from its base on."""
    t = ir.MemRefType(memref.type)
    if not isinstance(t.layout, ir.StridedLayoutAttr):
        return "affine_map<" not in str(t)
    stride = 1
    wanted: list[int] = []
    for size in reversed(list(t.shape)):
        wanted.insert(0, stride)
        stride = stride * size if size >= 0 and stride >= 0 else -1
    return t.layout.offset == 0 and -1 not in wanted and list(t.layout.strides) == wanted


def _linear(value: Value, factor: int, terms: Terms) -> None:
    """Adds `factor * value` to `terms`, sums and constant factors taken apart."""
    fixed = int_constant(value)
    if fixed is not None:
        terms[None] = terms.get(None, 0) + factor * fixed
        return
    op = maker(value)
    if op is not None and op.name == "arith.addi":
        _linear(op.operands[0], factor, terms)
        _linear(op.operands[1], factor, terms)
    elif op is not None and op.name == "arith.subi":
        _linear(op.operands[0], factor, terms)
        _linear(op.operands[1], -factor, terms)
    elif op is not None and op.name == "arith.muli" and int_constant(op.operands[1]) is not None:
        _linear(op.operands[0], factor * (int_constant(op.operands[1]) or 0), terms)
    elif op is not None and op.name == "arith.muli" and int_constant(op.operands[0]) is not None:
        _linear(op.operands[1], factor * (int_constant(op.operands[0]) or 0), terms)
    elif op is not None and op.name == "arith.index_cast" and str(op.operands[0].type) in ("i32", "index"):
        _linear(op.operands[0], factor, terms)      # of narrow-indices: nothing in it passes 32 bits
    else:
        terms[value] = terms.get(value, 0) + factor


def _by_lane(value: Value, known: dict[Any, int]) -> bool:
    """Whether threads of a workgroup may hold different values."""
    key = "lane", value
    if key not in known:
        op = maker(value)
        if op is None:
            parent = parent_op(value)
            known[key] = parent.name == "scf.for" and (
                ir.BlockArgument(value).arg_number > 0 or any(_by_lane(v, known) for v in list(parent.operands)[:3]))
        elif op.name in ("gpu.block_id", "arith.constant", "memref.dim") or _of_wave(op, known.get(WAVE, 0)):
            known[key] = False
        elif op.name.startswith("arith."):
            known[key] = any(_by_lane(v, known) for v in op.operands)
        else:
            known[key] = True
    return bool(known[key])


def _of_wave(op: Operation, lanes: int) -> bool:
    """Whether `op` gives the number of a thread without its lane, for waves of `lanes`; False without any."""
    by = int_constant(op.operands[1]) if lanes and op.name in ("arith.shrui", "arith.divui", "arith.andi") else None
    source = maker(op.operands[0]) if by is not None else None
    while source is not None and source.name in ("arith.index_cast", "arith.index_castui"):
        source = maker(source.operands[0])
    if by is None or source is None or source.name != "gpu.thread_id":
        return False
    return 1 << by >= lanes if op.name == "arith.shrui" else by % lanes == 0 and by > 0
