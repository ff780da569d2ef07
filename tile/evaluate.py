"""The meaning of tile programs by numpy: every instance one after the other, every op by its own `evaluate`.

A watcher sees what is read and written, and so finds reads out of bounds, reads of what nobody wrote, and two
instances that write one address. """

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from xcc import symbolic
from xcc._mlir import Block, Operation, ir
from xcc.diagnostics import UserError
from xcc.dialects import tile as tile_d
from xcc.dialects.tile.op import attrs_of, op_class
from xcc.dialects.tile.types import TileType
from xcc.dialects.xt.types import dtype_name, numpy_dtype
from xcc.tile.arith_numpy import elementwise
from xcc.tile.endless import Turns
from xcc.tile.program import Program, parse

__all__ = ["Watch", "bind", "evaluate"]

Array = np.ndarray[Any, Any]


class Watch:
    """Sees an evaluation; a subclass defines what it wants to know. `where` is ``file:line:column`` of the op,
    `program` the instance's numbers, `buffer` the array that was given (or a view of it), `indices` an array a dim of
    it, `active` which of them are meant: they may lie outside the buffer."""

    def begin(self, program: tuple[int, ...]) -> None:
        """An instance starts."""

    def read(self, where: str, program: tuple[int, ...], buffer: Array, indices: Sequence[Array], active: Array,
             inside: bool) -> None:
        """Elements are read; inside: the program says that none is out of bounds."""

    def write(self, where: str, program: tuple[int, ...], buffer: Array, indices: Sequence[Array], active: Array,
              atomic: str) -> None:
        """Elements are about to be written; atomic: the kind of an atomic update, "" for plain writes."""

    def failed(self, where: str, program: tuple[int, ...], message: str) -> None:
        """An assertion does not hold."""
        raise UserError(f"{where}: program {list(program)}: assertion failed{f': {message}' if message else ''}")

    def endless(self, where: str, program: tuple[int, ...]) -> None:
        """A loop goes on forever: a turn begins as one before it did."""
        raise UserError(f"{where}: program {list(program)}: this loop never ends")

    def printed(self, where: str, program: tuple[int, ...], text: str) -> None:
        """A print."""
        print(f"{list(program)} {text}")


def evaluate(program: Program | str, arrays: Sequence[Any], grid: Sequence[int] = (),
             watch: Watch | None = None) -> None:
    """Runs a program on `arrays`, one for each parameter (numbers for scalars), which are written in place. grid: what
    the program leaves to the launch."""
    p = parse(program) if isinstance(program, str) else program
    values, sizes, _ = bind(p, arrays, grid)
    machine = _Machine(p, sizes, watch or Watch())
    for number in np.ndindex(*sizes):
        machine.instance(number, values)


def bind(p: Program, arrays: Sequence[Any], grid: Sequence[int] = ()
         ) -> tuple[list[Any], tuple[int, ...], dict[str, int]]:
    """The parameters' values as the IR has them (views of the arrays), the grid, and what its symbols are; UserError
    where arguments do not fit."""
    parameters = p.parameters
    if len(arrays) != len(parameters):
        raise UserError(f"{p.name} takes {', '.join(q.name for q in parameters)}; {len(arrays)} arguments were given")
    symbols: dict[str, int] = {}
    values: list[Any] = []
    for q, given in zip(parameters, arrays, strict=True):
        if not q.is_buffer:
            values.append(_scalar(p.name, q, given))
            if q.type.dtype[0] == "i":
                symbols[q.name] = int(values[-1])
            continue
        values.append(_buffer(p.name, q, given))
        for d, (n, size) in enumerate(zip(q.dims, values[-1].shape, strict=True)):
            name = n if isinstance(n, int) else symbolic.bare_symbol(n)
            want = name if isinstance(name, int) else symbols.setdefault(name, size) if name is not None else \
                symbolic.evaluate(n, symbols)
            if want != size:
                raise UserError(f"{p.name}: dim {d} of {q.name} is {size}, but {n} is {want}")
    return values, _grid(p, symbols, grid), symbols


def _grid(p: Program, symbols: dict[str, int], given: Sequence[int]) -> tuple[int, ...]:
    wanted = [s for n in p.grid for s in sorted(symbolic.symbols_of(n)) if s not in symbols] \
        if any(not isinstance(n, int) for n in p.grid) else []
    wanted = list(dict.fromkeys(wanted))
    names = wanted[:len(given)] if wanted[:1] == ["grid_0"] and len(given) < len(wanted) else wanted
    if len(names) != len(given):
        raise UserError(f"{p.name}: the grid needs {', '.join(wanted) or 'nothing'}; {len(given)} numbers were given")
    symbols |= dict(zip(names, map(int, given), strict=True)) | {n: 1 for n in wanted[len(names):]}
    return tuple(n if isinstance(n, int) else symbolic.evaluate(n, symbols) for n in p.grid)


def _scalar(name: str, q: Any, given: Any) -> Any:
    dtype = np.dtype(np.int64) if q.type.dtype == "index" else numpy_dtype(q.type.dtype)
    x = np.asarray(given)
    if x.ndim:
        raise UserError(f"{name}: {q.name} is a number, an array of shape {x.shape} was given")
    if dtype.kind in "iu" and x.dtype.kind == "f":
        raise UserError(f"{name}: {q.name} is {q.type.dtype}, {given} was given")
    return x.astype(dtype)[()]


def _buffer(name: str, q: Any, given: Any) -> Array:
    dtype = numpy_dtype(q.type.dtype)
    if not isinstance(given, np.ndarray):
        raise UserError(f"{name}: {q.name} is {q.type}, {type(given).__name__} was given")
    same = given.dtype == dtype or (given.dtype.kind in "iu" and dtype.kind in "iu"
                                    and given.dtype.itemsize == dtype.itemsize)
    if not same or given.ndim != q.type.rank:
        raise UserError(f"{name}: {q.name} is {q.type}, {dtype_name(given.dtype)}{list(given.shape)} was given")
    steps = [s // given.itemsize for s in given.strides]
    wanted = q.strides if q.strides is not None else _contiguous(given.shape)
    if any(w is not None and w != s and n > 1 for w, s, n in zip(wanted, steps, given.shape, strict=True)) \
            and given.size:
        raise UserError(f"{name}: {q.name} has strides {steps} where {[w for w in wanted]} are declared")
    rows = [*(steps[:-1] if q.strides is not None else ()), *given.shape[-1:]]
    if any(n % q.multiple for n in rows):
        raise UserError(f"{name}: rows of {q.name} are {given.shape[-1]} elements long and start {steps[:-1]} apart: "
                        f"no multiples of {q.multiple}")
    return given.view(dtype) if given.dtype != dtype else given


def _contiguous(shape: Sequence[int]) -> list[int]:
    out, step = [], 1
    for n in reversed(shape):
        out.append(step)
        step *= n
    return out[::-1]


class _Machine:
    """Runs instances of one program."""

    def __init__(self, p: Program, grid: tuple[int, ...], watch: Watch) -> None:
        self.block, self.grid, self.watch = p.func.operation.regions[0].blocks[0], grid, watch
        self.program: tuple[int, ...] = ()
        self.env: dict[Any, Any] = {}

    def instance(self, number: tuple[int, ...], values: Sequence[Any]) -> None:
        self.program = (*number, 0, 0)[:3]
        self.env = dict(zip(self.block.arguments, values, strict=True))
        self.watch.begin(tuple(number))
        with np.errstate(all="ignore"):
            self.run(self.block)

    def run(self, block: Block) -> list[Any]:
        """The operands of the block's last op."""
        for op in block.operations:
            o = op.operation
            if o.name in ("scf.yield", "scf.condition", "func.return", "tile.yield"):
                return [self.env[v] for v in o.operands]
            made = self.step(o, [self.env[v] for v in o.operands])
            self.env.update(zip(o.results, made, strict=True))
        return []

    def step(self, op: Operation, values: list[Any]) -> Sequence[Any]:
        if op.name.startswith("tile."):
            return self.tile(op, values)
        if op.name.startswith("scf."):
            return _CONTROL[op.name](self, op, values)
        if op.name == "memref.dim":
            return [np.int64(values[0].shape[int(values[1])])]
        return elementwise(op, values)

    def call(self, block: Block, values: Sequence[Any]) -> list[Any]:
        self.env.update(zip(block.arguments, values, strict=True))
        return self.run(block)

    def tile(self, op: Operation, values: list[Any]) -> Sequence[Any]:
        cls = op_class(op)
        assert cls is not None
        a = attrs_of(op)
        operands = tile_d.op.grouped(cls, values)
        if op.name in ("tile.program_id", "tile.num_programs"):
            return [cls.evaluate(a, self.program if op.name == "tile.program_id" else (*self.grid, 1, 1)[:3])]
        if op.name == "tile.assert":
            if not cls.evaluate(a, *operands):
                self.watch.failed(where_of(op), self.program, a.message)
            return []
        if op.name == "tile.print":
            self.watch.printed(where_of(op), self.program, cls.evaluate(a, *operands))
            return []
        if cls.effects:
            self._watch(op, cls, a, operands)
        for region in op.regions:
            operands.append(self._function(region.blocks[0]))
        out = cls.evaluate(a, *operands)
        made = list(out) if isinstance(out, (tuple, list)) else [] if out is None else [out]
        return [_typed(v, r) for v, r in zip(made, op.results, strict=True)]

    def _function(self, block: Block) -> Callable[..., Any]:
        return lambda *values: self.call(block, values)

    def _watch(self, op: Operation, cls: Any, a: Any, operands: list[Any]) -> None:
        if type(self.watch) is Watch:
            return
        indices, active = cls.places(a, *operands)
        buffer = operands[list(cls.operand_fields).index("buffer")]
        if cls.effects in ("read", "both"):
            self.watch.read(where_of(op), self.program, buffer, indices, active, getattr(a, "inside", False))
        if cls.effects in ("write", "both"):
            self.watch.write(where_of(op), self.program, buffer, indices, active,
                             getattr(a, "kind", "compare_swap") if cls.effects == "both" else "")

    def loop(self, op: Operation, values: list[Any]) -> Sequence[Any]:
        low, high, step, *carried = values
        block = op.regions[0].blocks[0]
        for i in range(int(low), int(high), int(step)):
            carried = self.call(block, [np.int64(i), *carried])
        return carried

    def while_loop(self, op: Operation, values: list[Any]) -> Sequence[Any]:
        before, after = (r.blocks[0] for r in op.regions)
        turns = Turns(op, lambda: [np.asarray(self.env[a]).tobytes() for a in self.block.arguments])
        go, *carried = self.call(before, values)
        while go:
            given = self.call(after, carried)
            if turns.again(given):
                self.watch.endless(where_of(op), self.program)
            go, *carried = self.call(before, given)
        return carried

    def branch(self, op: Operation, values: list[Any]) -> Sequence[Any]:
        region = op.regions[0 if values[0] else 1]
        return self.run(region.blocks[0]) if len(region.blocks) else []


_CONTROL: Mapping[str, Any] = {"scf.for": _Machine.loop, "scf.while": _Machine.while_loop, "scf.if": _Machine.branch}


def _typed(value: Any, result: Any) -> Any:
    t = TileType.of(result)
    if t.is_buffer:
        return value
    x = np.asarray(value)
    dtype = np.dtype(np.int64) if t.dtype == "index" else numpy_dtype(t.dtype)
    x = x if x.dtype == dtype else x.astype(dtype)
    return x if t.shape else x[()]


def where_of(op: Operation) -> str:
    """``file:line:column`` of an operation."""
    text = str(op.location).removeprefix("loc(").removesuffix(")")
    return text.replace('"', "") if isinstance(op.location, ir.Location) else ""
