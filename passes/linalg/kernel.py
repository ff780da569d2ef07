"""A linalg-stage kernel read into plain Python: tensors, structured ops, and accesses as symbolic expressions.

An access is a tuple of dims over the loop symbols ``i0, i1, ...`` of the op (``2*i1 + i4``). Reading also normalises:
unit dims are dropped, and neighbouring dims that every op walks together are merged into one, so that a pointwise
kernel over [8, 64, 7, 7] is a kernel over [25088].
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from xcc import symbolic
from xcc._mlir import ir
from xcc.diagnostics import CompilerBug
from xcc.symbolic import Dim

Access = tuple[Dim, ...]


@dataclass(eq=False)
class Tensor:
    """A tensor value: kernel argument (`arg` >= 0), op result (`producer`) or constant.

    dims are those after normalisation; `groups[j]` lists the original dims that make dim j.
    """

    value: Any
    dims: tuple[Dim, ...]
    element: Any
    arg: int = -1
    producer: Op | None = None
    index: int = 0
    constant: Any = None
    groups: list[list[int]] = field(default_factory=list)


@dataclass(eq=False)
class Op:
    """One linalg.generic. `loops[p]` is the size of loop ``i<p>``; `neutral[r]` the initial scalar of result r."""

    operation: Any
    loops: list[Dim]
    reduction: list[bool]
    inputs: list[tuple[Tensor, Access]]
    outs: list[Access]
    neutral: list[Any]
    results: list[Tensor] = field(default_factory=list)

    @property
    def block(self) -> Any:
        return self.operation.regions[0].blocks[0]

    @property
    def is_reduction(self) -> bool:
        return any(self.reduction)

    def out_loops(self, result: int = 0) -> list[int]:
        """The loop that walks each dim of a result."""
        return [loop_index(e) for e in self.outs[result]]


@dataclass(frozen=True)
class Border:
    """What is stored around a result: `low` and `high` elements of the scalar `value` at the ends of each original dim.

    dims: the original dims of what is computed, without the border.
    """

    low: tuple[int, ...]
    high: tuple[int, ...]
    value: Any
    dims: tuple[Dim, ...]

    @property
    def padded(self) -> tuple[Dim, ...]:
        """The dims of the buffer."""
        return tuple(lo + d + hi for lo, d, hi in zip(self.low, self.dims, self.high, strict=True))

    def pads(self, d: int) -> bool:
        return self.low[d] != 0 or self.high[d] != 0


@dataclass(eq=False)
class Kernel:
    """A whole kernel: arguments, results, ops in order, symbol arguments.

    borders[n] is what is stored around result n, None: nothing.
    """

    name: str
    args: list[Tensor]
    results: list[Tensor]
    result_dims: list[tuple[Dim, ...]]
    ops: list[Op]
    symbols: dict[str, Any]
    function: Any
    by_value: dict[Any, Tensor] = field(default_factory=dict)
    borders: list[Border | None] = field(default_factory=list)

    def result_shape(self, n: int) -> tuple[Dim, ...]:
        return self.results[n].dims


def loop(n: int) -> symbolic.Expr:
    return symbolic.sym(f"i{n}")


def loop_index(e: Dim) -> int:
    """The n of a bare ``i<n>``; CompilerBug for anything else."""
    text = str(e)
    if isinstance(e, symbolic.Expr) and text[0] == "i" and text[1:].isdigit():
        return int(text[1:])
    raise CompilerBug(f"an output is indexed by '{text}', which is not one loop")


def bare_loop(e: Dim) -> int | None:
    """The n of ``i<n>``, None for any other expression."""
    text = str(e)
    return int(text[1:]) if isinstance(e, symbolic.Expr) and text[0] == "i" and text[1:].isdigit() else None


def is_packed(access: Access) -> bool:
    """Whether the access is to panels of columns: (n floordiv P, ..., k, n mod P)."""
    last = access[-1] if access else 0
    return len(access) > 2 and isinstance(last, symbolic.Expr) and \
        [[atom[0] for atom in monomial] for monomial, _ in last.terms] == [["mod"]]


def index_to_dim(value: Any, symbols: dict[Any, str]) -> Dim:
    """The dim that an index SSA value computes from constants and symbol arguments."""
    if value in symbols:
        return symbolic.sym(symbols[value])
    op = value.owner
    if isinstance(op, ir.Block):
        raise CompilerBug("a dim is computed from a block argument that is not a symbol")
    if op.name == "arith.constant":
        return int(op.attributes["value"].value)
    operands = [index_to_dim(v, symbols) for v in op.operands]
    a, b = operands[0], operands[1] if len(operands) > 1 else 0
    match op.name:
        case "arith.addi":
            return a + b
        case "arith.subi":
            return a - b
        case "arith.muli":
            return a * b
        case "arith.floordivsi" | "arith.divsi" | "arith.divui":
            return symbolic.floordiv(a, b)
        case "arith.ceildivsi" | "arith.ceildivui":
            return symbolic.ceildiv(a, b)
        case "arith.remsi" | "arith.remui":
            return symbolic.mod(a, b)
        case "arith.maxsi" | "arith.maxui":
            return symbolic.dim_max(a, b)
        case "arith.minsi" | "arith.minui":
            return symbolic.dim_min(a, b)
    raise CompilerBug(f"a dim is computed by {op.name}")


def affine_to_dim(e: Any) -> Dim:
    """An upstream affine expression over d0, d1... as a dim over i0, i1..."""
    if isinstance(e, ir.AffineDimExpr):
        return loop(ir.AffineDimExpr(e).position)
    if isinstance(e, ir.AffineConstantExpr):
        return int(ir.AffineConstantExpr(e).value)
    for kind, make in ((ir.AffineAddExpr, lambda a, b: a + b), (ir.AffineMulExpr, lambda a, b: a * b),
                       (ir.AffineFloorDivExpr, symbolic.floordiv), (ir.AffineCeilDivExpr, symbolic.ceildiv),
                       (ir.AffineModExpr, symbolic.mod)):
        if isinstance(e, kind):
            bound = kind(e)
            return make(affine_to_dim(bound.lhs), affine_to_dim(bound.rhs))
    raise CompilerBug(f"affine expression {e} is not supported")


def read(function: Any) -> Kernel:
    """Reads a kernel function at stage linalg."""
    attrs = function.attributes
    name = ir.StringAttr(attrs["sym_name"]).value
    symbol_names = [a.value for a in attrs["xt.symbols"]] if "xt.symbols" in attrs else []
    block = function.regions[0].blocks[0]
    n_tensors = len(block.arguments) - len(symbol_names)
    symbol_args = list(block.arguments)[n_tensors:]
    names = dict(zip(symbol_args, symbol_names, strict=True))
    kernel = Kernel(name, [], [], [], [], dict(zip(symbol_names, symbol_args, strict=True)), function)
    arg_dims = [_dims(a) for a in attrs["xt.arg_dims"]]
    result_dims = [_dims(a) for a in attrs["xt.result_dims"]]
    tensors = kernel.by_value
    for n, (value, dims) in enumerate(zip(list(block.arguments)[:n_tensors], arg_dims, strict=True)):
        t = Tensor(value, dims, ir.RankedTensorType(value.type).element_type, arg=n)
        tensors[value] = t
        kernel.args.append(t)
    fills: dict[Any, Any] = {}
    sizes: dict[Any, tuple[Dim, ...]] = {}
    padded: dict[Any, tuple[Any, Border]] = {}
    for op in block.operations:
        match op.name:
            case "tensor.empty":
                shape = ir.RankedTensorType(op.results[0].type).shape
                dynamic = iter(op.operands)
                sizes[op.results[0]] = tuple(
                    index_to_dim(next(dynamic), names) if s < 0 else s for s in shape)
            case "linalg.fill":
                fills[op.results[0]] = op.operands[0]
                sizes[op.results[0]] = sizes[op.operands[1]]
            case "linalg.generic":
                _read_generic(op, kernel, sizes, fills)
            case "tensor.expand_shape" | "tensor.collapse_shape" | "tensor.cast":
                _read_unit_reshape(op, kernel)
            case "arith.constant" if isinstance(op.results[0].type, ir.RankedTensorType):
                t = ir.RankedTensorType(op.results[0].type)
                tensors[op.results[0]] = Tensor(op.results[0], tuple(t.shape), t.element_type,
                                                constant=op.attributes["value"])
            case "tensor.pad":
                padded[op.results[0]] = _read_pad(op, kernel)
            case "func.return":
                for v in op.operands:
                    if v not in tensors and v in fills:
                        raise CompilerBug(f"kernel {name} returns a bare fill")
                made = [padded.get(v, (v, None)) for v in op.operands]
                kernel.results = [tensors[v] for v, _ in made]
                kernel.borders = [border for _, border in made]
            case n if n.startswith("arith."):
                pass
            case n:
                raise CompilerBug(f"kernel {name}: {n} is not legal at stage linalg")
    kernel.result_dims = result_dims
    for t in tensors.values():
        t.groups = [[j] for j in range(len(t.dims))]
    _drop_units(kernel)
    _merge_dims(kernel)
    return kernel


def _dims(attr: Any) -> tuple[Dim, ...]:
    return tuple(a.value if isinstance(a, ir.IntegerAttr) else symbolic.parse(a.value) for a in attr)


def _read_generic(op: Any, kernel: Kernel, sizes: dict[Any, tuple[Dim, ...]], fills: dict[Any, Any]) -> None:
    maps = [a.value for a in op.attributes["indexing_maps"]]
    n_inputs = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))[0]
    accesses = [tuple(affine_to_dim(e) for e in m.results) for m in maps]
    reduction = ["reduction" in str(a) for a in op.attributes["iterator_types"]]
    operands = list(op.operands)
    loops: list[Dim | None] = [None] * len(reduction)
    for v in operands[:n_inputs]:
        if v not in kernel.by_value:  # a tensor.empty that only states the size of a loop
            kernel.by_value[v] = Tensor(v, sizes[v], ir.RankedTensorType(v.type).element_type)
    shapes = [kernel.by_value[v].dims for v in operands[:n_inputs]] + [sizes[v] for v in operands[n_inputs:]]
    for access, shape in reversed(list(zip(accesses, shapes, strict=True))):
        for e, d in zip(access, shape, strict=True):
            if isinstance(e, symbolic.Expr) and str(e)[1:].isdigit():
                loops[loop_index(e)] = d
    for e_access, shape in zip(accesses, shapes, strict=True):
        for e, d in zip(e_access, shape, strict=True):
            _infer_window(e, d, loops)
    if any(x is None for x in loops):
        raise CompilerBug(f"kernel {kernel.name}: the size of a loop cannot be told from the shapes")
    model = Op(op, [x for x in loops if x is not None], reduction,
               [(kernel.by_value[v], a) for v, a in zip(operands[:n_inputs], accesses[:n_inputs], strict=True)],
               accesses[n_inputs:], [fills.get(v) for v in operands[n_inputs:]])
    for n, r in enumerate(op.results):
        t = Tensor(r, sizes[operands[n_inputs + n]], ir.RankedTensorType(r.type).element_type, producer=model, index=n)
        kernel.by_value[r] = t
        model.results.append(t)
    kernel.ops.append(model)


def _read_pad(op: Any, kernel: Kernel) -> tuple[Any, Border]:
    """The value that a tensor.pad stores, and its border."""
    low, high = (tuple(ir.DenseI64ArrayAttr(op.attributes[side])) for side in ("static_low", "static_high"))
    source = op.operands[0]
    fill = list(op.operation.regions[0].blocks[0].operations)[-1].operands[0]
    owner = fill.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant" or len(op.operands) > 1 \
            or min((*low, *high)) < 0 or source not in kernel.by_value:
        raise CompilerBug(f"kernel {kernel.name}: {op} is no border of constants around a value of the kernel")
    return source, Border(low, high, owner.attributes["value"], kernel.by_value[source].dims)


def _infer_window(e: Dim, size: Dim, loops: list[Dim | None]) -> None:
    """From ``s*i1 + d*i4`` over a dim of `size`: the one loop whose size is still unknown, when static."""
    if not isinstance(e, symbolic.Expr) or any(len(m) > 1 or len(m[0]) > 1 for m, _ in e.terms if m):
        return
    unknown = [(m, c) for m, c in e.terms if m and loops[int(m[0][0][1:])] is None]
    if len(unknown) != 1 or not isinstance(size, int):
        return
    rest = size - 1
    for m, c in e.terms:
        if m and loops[int(m[0][0][1:])] is not None:
            other = loops[int(m[0][0][1:])]
            if not isinstance(other, int):
                return
            rest -= c * (other - 1)
        elif not m:
            rest -= c
    (m, c), = unknown
    loops[int(m[0][0][1:])] = rest // c + 1


def _read_unit_reshape(op: Any, kernel: Kernel) -> None:
    """Reshapes that only add or drop unit dims: the same tensor under another value."""
    source = kernel.by_value[op.operands[0]]
    out = ir.RankedTensorType(op.results[0].type)
    wide = [d for d in source.dims if d != 1]
    dims: list[Dim] = []
    it = iter(wide)
    for s in out.shape:
        dims.append(1 if s == 1 else next(it))
    t = Tensor(op.results[0], tuple(dims), source.element)
    view = Op(None, list(dims), [False] * len(dims), [], [tuple(loop(n) for n in range(len(dims)))], [None])
    keep = [n for n, d in enumerate(dims) if d != 1]
    positions = iter(keep)
    access = tuple(0 if d == 1 else loop(next(positions)) for d in source.dims)
    view.inputs = [(source, access)]
    view.results = [t]
    t.producer = view
    kernel.by_value[op.results[0]] = t
    kernel.ops.append(view)


def _drop_units(kernel: Kernel) -> None:
    """Removes dims and loops of size 1."""
    for op in kernel.ops:
        env: dict[str, Dim] = {f"i{n}": 0 for n, size in enumerate(op.loops) if size == 1}
        if env:
            op.inputs = [(t, tuple(symbolic.substitute(e, env) for e in a)) for t, a in op.inputs]
            op.outs = [tuple(symbolic.substitute(e, env) for e in a) for a in op.outs]
    for op in kernel.ops:
        op.inputs = [(t, tuple(e for e, d in zip(a, t.dims, strict=True) if d != 1)) for t, a in op.inputs]
        op.outs = [tuple(e for e, d in zip(a, r.dims, strict=True) if d != 1)
                   for r, a in zip(op.results, op.outs, strict=True)]
    for t in kernel.by_value.values():
        keep = [j for j, d in enumerate(t.dims) if d != 1]
        t.groups = [t.groups[j] for j in keep]
        t.dims = tuple(t.dims[j] for j in keep)


def captured_tensors(op: Op, kernel: Kernel) -> Iterator[Tensor]:
    """The tensors that the op's body reads by tensor.extract."""
    if op.operation is None:
        return
    for inner in op.block.operations:
        if inner.name == "tensor.extract" and inner.operands[0] in kernel.by_value:
            yield kernel.by_value[inner.operands[0]]


def _indexed_loops(op: Op) -> set[int]:
    if op.operation is None:
        return set()
    return {int(o.attributes["dim"].value) for o in op.block.operations if o.name == "linalg.index"}


def _merge_dims(kernel: Kernel) -> None:
    """Merges neighbouring dims that are contiguous in every access; one pair at a time, until none is left."""
    while True:
        pair = _find_mergeable(kernel)
        if pair is None:
            return
        tensor_pairs, op_pairs = pair
        for t in sorted(tensor_pairs, key=id):
            j = tensor_pairs[t]
            t.dims = (*t.dims[:j], t.dims[j] * t.dims[j + 1], *t.dims[j + 2:])
            t.groups = [*t.groups[:j], t.groups[j] + t.groups[j + 1], *t.groups[j + 2:]]
        for op, (p, q) in op_pairs.items():
            inner = f"i{q}"
            op.inputs = [(t, tuple(e for e in a if str(e) != inner)) for t, a in op.inputs]
            op.outs = [tuple(e for e in a if str(e) != inner) for a in op.outs]
            op.loops[p], op.loops[q] = op.loops[p] * op.loops[q], 1


def _find_mergeable(kernel: Kernel) -> tuple[dict[Tensor, int], dict[Op, tuple[int, int]]] | None:
    for t in kernel.results:
        for j in range(len(t.dims) - 1):
            found = _closure(kernel, t, j)
            if found is not None:
                return found
    return None


def _cuts_lanes(kernel: Kernel, t: Tensor, j: int) -> bool:
    """Whether dims (j, j+1) of a result must stay apart: a border lies between elements along its last dim.

    Dims of size 1 between them count, too: they are in no group, but may have a border.
    """
    return j + 2 == len(t.dims) and any(
        border is not None and any(border.pads(d) for d in range(t.groups[j][0] + 1, t.groups[j + 1][-1] + 1))
        for r, border in zip(kernel.results, kernel.borders, strict=True) if r is t)


def _closure(kernel: Kernel, start: Tensor, at: int) -> tuple[dict[Tensor, int], dict[Op, tuple[int, int]]] | None:
    """Everything that merges together with dims (at, at+1) of `start`, or None when something forbids it."""
    tensors: dict[Tensor, int] = {start: at}
    ops: dict[Op, tuple[int, int]] = {}
    work = [start]
    captured = {t for op in kernel.ops for t in captured_tensors(op, kernel)}
    while work:
        t = work.pop()
        j = tensors[t]
        if t in captured or t.constant is not None or _cuts_lanes(kernel, t, j):
            return None
        for op in kernel.ops:
            sites = [(s, a) for s, a in [*op.inputs, *zip(op.results, op.outs, strict=True)]]
            for s, a in sites:
                if s is not t:
                    continue
                x, y = str(a[j]), str(a[j + 1])
                if not (x[0] == "i" and x[1:].isdigit() and y[0] == "i" and y[1:].isdigit()):
                    return None
                pair = (int(x[1:]), int(y[1:]))
                if op in ops:
                    if ops[op] != pair:
                        return None
                    continue
                p, q = pair
                if op.reduction[p] != op.reduction[q] or _indexed_loops(op) & {p, q}:
                    return None
                if op.loops[p] != t.dims[j] or op.loops[q] != t.dims[j + 1]:
                    return None
                ops[op] = pair
                for s2, a2 in sites:
                    texts = [str(e) for e in a2]
                    touching = [n for n, e in enumerate(a2)
                                if {f"i{p}", f"i{q}"} & set(symbolic.symbols_of(e))]
                    if not touching:
                        continue
                    if len(touching) != 2 or texts[touching[0]] != f"i{p}" or texts[touching[1]] != f"i{q}" \
                            or touching[1] != touching[0] + 1:
                        return None
                    if s2.dims[touching[0]] != op.loops[p] or s2.dims[touching[1]] != op.loops[q]:
                        return None
                    if s2 in tensors:
                        if tensors[s2] != touching[0]:
                            return None
                    else:
                        tensors[s2] = touching[0]
                        work.append(s2)
    return tensors, ops
