"""`llvm.inline_asm`: the PTX statements that the pass ``warpgroup-matrix`` writes, on registers of their own.

What a statement reads is in a register, and so is what it writes, and whether two are one is the code generator's
choice, within the constraints: a result without ``&`` may have the register of an operand that is not tied to it and
begins with the same value. Here it has it, so that a statement which writes a result and then reads the operand is seen
to be wrong. Matrices in shared memory are found by the bits of their descriptors (PTX ISA, "Matrix Descriptor Format").
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from xcc._mlir import Operation, ir
from xcc.diagnostics import UserError
from xcc.interpreter.machine import Machine
from xcc.interpreter.memory import MemRef
from xcc.interpreter.ops_matrix import mma_fragments, multiply
from xcc.interpreter.ops_memref import note_shared
from xcc.interpreter.ops_warpgroup import Side, add_product, held_matrix, matrix
from xcc.interpreter.registry import Runner, op
from xcc.interpreter.types import DTYPES

if TYPE_CHECKING:
    from xcc.interpreter.kernel import Kernel

Array = np.ndarray[Any, Any]
ROWS = {1: 128, 2: 64, 3: 32}       # bytes of a row, by the swizzle's two bits
TYPES = {"f16": "f16", "bf16": "bf16", "tf32": "f32", "e4m3": "f8E4M3FN", "e5m2": "f8E5M2", "s8": "i8", "u8": "ui8"}
SUMS = {"f32": np.dtype(np.float32), "s32": np.dtype(np.int32)}
_WGMMA = re.compile(r"wgmma\.mma_async\.sync\.aligned\.m64n(\d+)k(\d+)\.(\w+)\.(\w+)\.(\w+)")
_MMA = re.compile(r"mma\.sync\.aligned\.m(\d+)n(\d+)k(\d+)\.row\.col\.\w+\.(\w+)\.(\w+)\.(\w+)")


@op("memref.extract_aligned_pointer_as_index")
def _pointer(source: Operation, kernel: Kernel) -> Runner:
    """Of shared memory: its distance from the beginning."""
    note_shared(kernel, source.operands[0].type)

    def run(machine: Machine, ref: MemRef) -> Array:
        if ref.buffer is not machine.named[""].buffer:
            raise UserError(f"the interpreter gives addresses of the launch's shared memory only: {machine.where()}")
        return np.atleast_1d(np.asarray(ref.offset, np.int64)) * ref.dtype.itemsize
    return run


@op("llvm.extractvalue")
def _extract(source: Operation, _: Kernel) -> Runner:
    position, = ir.DenseI64ArrayAttr(source.attributes["position"])
    return lambda machine, values: values[position]


@op("llvm.inline_asm")
def _statement(source: Operation, _: Kernel) -> Runner:
    text = ir.StringAttr(source.attributes["asm_string"]).value.strip("{} \n")
    steps = [_step(part.strip(), source) for part in text.split(";") if part.strip()]
    constraints = ir.StringAttr(source.attributes["constraints"]).value.split(",")
    outputs = [c for c in constraints if c.startswith("=")]
    inputs = constraints[len(outputs):]
    tied = {n: int(c) for n, c in enumerate(inputs) if c.isdecimal()}
    early = {n for n, c in enumerate(outputs) if "&" in c}

    def run(machine: Machine, *operands: Array) -> list[Array]:
        registers: dict[str, Array] = {}
        place = {f"${len(outputs) + n}": f"${len(outputs) + n}" for n in range(len(inputs))}
        for n, output in tied.items():
            registers[f"${output}"] = operands[n]
        for n, value in enumerate(operands):
            name = place[f"${len(outputs) + n}"]
            registers[name] = value
            if n not in tied:
                place[name] = next((f"${o}" for m, o in tied.items() if o not in early
                                    and _same_bits(operands[m], value)), name)
        for step in steps:
            step(machine, registers, place)
        return [registers[f"${n}"] for n in range(len(outputs))]
    return run


def _same_bits(a: Array, b: Array) -> bool:
    """Whether two registers hold the same in all threads."""
    if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray) or a.dtype.itemsize != b.dtype.itemsize:
        return False
    size = f"u{a.dtype.itemsize}"
    return bool((np.ascontiguousarray(a).view(size) == np.ascontiguousarray(b).view(size)).all())


Step = Callable[[Machine, dict[str, Array], dict[str, str]], None]


def _step(text: str, source: Operation) -> Step:
    """One instruction, on registers by name; `place` says in which register an operand lies."""
    name, _, rest = text.partition(" ")
    operands = re.findall(r"\{[^}]*\}|[^,\s]+", rest)
    if found := _WGMMA.fullmatch(name):
        return _wgmma(int(found[1]), int(found[2]), SUMS[found[3]], (TYPES[found[4]], TYPES[found[5]]), operands)
    if found := _MMA.fullmatch(name):
        shape = int(found[1]), int(found[2]), int(found[3])
        return _mma(shape, SUMS[found[6]], (TYPES[found[4]], TYPES[found[5]]), operands)
    if name == "add.s64":
        def add(machine: Machine, registers: dict[str, Array], place: dict[str, str]) -> None:
            registers[operands[0]] = registers[place.get(operands[1], operands[1])] + int(operands[2])
        return add
    if name == "wgmma.wait_group.sync.aligned":
        def wait(machine: Machine, registers: dict[str, Array], place: dict[str, str]) -> None:
            machine.reading.wait(int(operands[0]))
        return wait
    if name in (".reg", "setp.eq.b32", "wgmma.fence.sync.aligned"):     # setp: always true
        return lambda machine, registers, place: None
    raise UserError(f"the interpreter does not know the PTX instruction {name} of {source}")


def _names(group: str) -> list[str]:
    return [n.strip() for n in group.strip("{}").split(",")]


def _read(machine: Machine, registers: dict[str, Array], place: dict[str, str], group: str, dtype: Any) -> Array:
    """The registers of a group as elements (threads, count) of `dtype`."""
    words = [np.broadcast_to(registers[place.get(n, n)], (machine.count,)) for n in _names(group)]
    return np.ascontiguousarray(np.stack(words, axis=1)).view(dtype)


def _write(registers: dict[str, Array], group: str, value: Array) -> None:
    for n, name in enumerate(_names(group)):
        registers[name] = np.ascontiguousarray(value[:, n])


def _wgmma(n: int, k: int, sums: Any, types: tuple[str, str], operands: list[str]) -> Step:
    acc, left, right, _, *more = operands
    turned = [t == "1" for t in more[2:]] if DTYPES[types[0]].itemsize == 2 else [False]

    def run(machine: Machine, registers: dict[str, Array], place: dict[str, str]) -> None:
        if left.startswith("{"):
            a = held_matrix(machine, _read(machine, registers, place, left, DTYPES[types[0]]), 0, 64, k)
        else:
            a = _tile(machine, registers[left], types[0], not turned[0], 64, k)
        b = _tile(machine, registers[right], types[1], not turned[-1], n, k)
        _write(registers, acc, add_product(machine, _read(machine, registers, place, acc, sums), a, b))
    return run


def _tile(machine: Machine, descriptor: Array, kind: str, near_k: bool, count: int, k: int) -> Array:
    """The matrices (warpgroups, count, k) of elements of type `kind` that a descriptor names."""
    dtype = DTYPES[kind]
    bits = np.broadcast_to(descriptor, (machine.count,)).view(np.uint64)
    fixed = np.unique(bits[machine.mask] >> np.uint64(16))
    if len(fixed) != 1 or int(fixed[0]) >> 46 not in ROWS:
        raise machine.fault("divergent-matrix-op", "threads name tiles of several forms, or one without a swizzle")
    form = int(fixed[0])
    side = Side(near_k, ROWS[form >> 46], (form >> 16 & 0x3FFF) * 16, (form & 0x3FFF) * 16, ())
    shared = machine.named[""]
    first = ((bits & np.uint64(0x3FFF)) * np.uint64(16 // dtype.itemsize)).astype(np.int64)
    ref = MemRef(shared.buffer, dtype, shared.base // dtype.itemsize, 0, [shared.buffer.size // dtype.itemsize], [1])
    return matrix(machine, ref, first, side, count, k, kind)


def _mma(shape: tuple[int, int, int], sums: Any, types: tuple[str, str], operands: list[str]) -> Step:
    fragments = mma_fragments(*shape, DTYPES[types[0]].itemsize)

    def run(machine: Machine, registers: dict[str, Array], place: dict[str, str]) -> None:
        a, b = (_read(machine, registers, place, group, DTYPES[kind])
                for group, kind in zip(operands[1:3], types, strict=True))
        c = _read(machine, registers, place, operands[3], sums)
        _write(registers, operands[0], multiply(machine, (a, fragments[0]), (b, fragments[1]), (c, fragments[2]), 32))
    return run
