"""Reads a kernel function at stage linalg into plain Python (passes/linalg/kernel/kernel.py)."""

from __future__ import annotations

from xcc import symbolic
from xcc._mlir import AffineExpr, Attribute, Operation, Value, ir
from xcc.diagnostics import CompilerBug
from xcc.passes.linalg.kernel.kernel import Border, Kernel, Op, Tensor, bare_loop, loop
from xcc.passes.linalg.kernel.merge_dims import drop_units, merge_dims
from xcc.symbolic import Dim


def read(function: Operation) -> Kernel:
    """Reads a kernel function at stage linalg."""
    attrs = function.attributes
    name = ir.StringAttr(attrs["sym_name"]).value
    symbol_names = [a.value for a in attrs["xt.symbols"]] if "xt.symbols" in attrs else []
    block = function.regions[0].blocks[0]
    n_tensors = len(block.arguments) - len(symbol_names)
    symbol_args = list(block.arguments)[n_tensors:]
    names = dict(zip(symbol_args, symbol_names, strict=True))
    kernel = Kernel(name, [], [], [], dict(zip(symbol_names, symbol_args, strict=True)), function)
    arg_dims = [_dims(a) for a in attrs["xt.arg_dims"]]
    tensors = kernel.by_value
    for n, (value, dims) in enumerate(zip(list(block.arguments)[:n_tensors], arg_dims, strict=True)):
        t = Tensor(value, dims, ir.RankedTensorType(value.type).element_type, arg=n)
        tensors[value] = t
        kernel.args.append(t)
    fills: dict[Value, Value] = {}
    sizes: dict[Value, tuple[Dim, ...]] = {}
    padded: dict[Value, tuple[Value, Border]] = {}
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
            case "arith.constant" if isinstance(op.results[0].type, ir.RankedTensorType):
                t = ir.RankedTensorType(op.results[0].type)
                tensors[op.results[0]] = Tensor(op.results[0], tuple(t.shape), t.element_type,
                                                constant=op.attributes["value"])
            case "tensor.pad":
                padded[op.results[0]] = _read_pad(op, kernel)
            case "tensor.insert_slice":
                padded[op.results[0]] = _read_insertion(op, kernel, sizes)
            case "func.return":
                _read_return(op, kernel, fills, padded)
            case other if other.startswith("arith."):
                pass
            case other:
                raise CompilerBug(f"kernel {name}: {other} is not legal at stage linalg")
    for t in tensors.values():
        t.groups = [[j] for j in range(len(t.dims))]
    drop_units(kernel)
    merge_dims(kernel)
    return kernel


def _read_return(op: Operation, kernel: Kernel, fills: dict[Value, Value],
                 padded: dict[Value, tuple[Value, Border]]) -> None:
    for v in op.operands:
        if v not in kernel.by_value and v in fills:
            raise CompilerBug(f"kernel {kernel.name} returns a bare fill")
    made = [padded.get(v, (v, None)) for v in op.operands]
    kernel.results = [kernel.by_value[v] for v, _ in made]
    kernel.borders = [border for _, border in made]


def _dims(attr: Attribute) -> tuple[Dim, ...]:
    return tuple(a.value if isinstance(a, ir.IntegerAttr) else symbolic.parse(a.value) for a in attr)


def _read_generic(op: Operation, kernel: Kernel, sizes: dict[Value, tuple[Dim, ...]],
                  fills: dict[Value, Value]) -> None:
    maps = [a.value for a in op.attributes["indexing_maps"]]
    n_inputs = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))[0]
    accesses = [tuple(_affine_to_dim(e) for e in m.results) for m in maps]
    reduction = ["reduction" in str(a) for a in op.attributes["iterator_types"]]
    operands = list(op.operands)
    loops: list[Dim | None] = [None] * len(reduction)
    for v in operands[:n_inputs]:
        if v not in kernel.by_value:  # a tensor.empty that only states the size of a loop
            kernel.by_value[v] = Tensor(v, sizes[v], ir.RankedTensorType(v.type).element_type)
    shapes = [kernel.by_value[v].dims for v in operands[:n_inputs]] + [sizes[v] for v in operands[n_inputs:]]
    for access, shape in reversed(list(zip(accesses, shapes, strict=True))):
        for e, d in zip(access, shape, strict=True):
            n = bare_loop(e)
            if n is not None:
                loops[n] = d
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


def _read_pad(op: Operation, kernel: Kernel) -> tuple[Value, Border]:
    """The value that a tensor.pad stores, and its border."""
    low, high = (tuple(ir.DenseI64ArrayAttr(op.attributes[side])) for side in ("static_low", "static_high"))
    source = op.operands[0]
    fill = list(op.operation.regions[0].blocks[0].operations)[-1].operands[0]
    owner = fill.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant" or len(op.operands) > 1 \
            or min((*low, *high)) < 0 or source not in kernel.by_value:
        raise CompilerBug(f"kernel {kernel.name}: {op} is no border of constants around a value of the kernel")
    return source, Border(low, high, owner.attributes["value"], kernel.by_value[source].dims)


def _read_insertion(op: Operation, kernel: Kernel, sizes: dict[Value, tuple[Dim, ...]]) -> tuple[Value, Border]:
    """The value that a tensor.insert_slice stores, and what is left around it."""
    source, into = op.operands[0], op.operands[1]
    low = tuple(ir.DenseI64ArrayAttr(op.attributes["static_offsets"]))
    steps = set(ir.DenseI64ArrayAttr(op.attributes["static_strides"]))
    if source in kernel.by_value and min(low, default=0) >= 0 and steps <= {1}:
        dims = kernel.by_value[source].dims
        whole = sizes[into] if into in sizes else kernel.by_value[into].dims
        high = tuple(w - lo - d for w, lo, d in zip(whole, low, dims, strict=True))
        if all(isinstance(h, int) for h in high):
            return source, Border(low, tuple(h for h in high if isinstance(h, int)), None, dims)
    raise CompilerBug(f"kernel {kernel.name}: {op} is no value of the kernel at constant places")


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


def index_to_dim(value: Value, symbols: dict[Value, str]) -> Dim:
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


def _affine_to_dim(e: AffineExpr) -> Dim:
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
            return make(_affine_to_dim(bound.lhs), _affine_to_dim(bound.rhs))
    raise CompilerBug(f"affine expression {e} is not supported")
