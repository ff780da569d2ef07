"""How often a schedule makes reductions: estimated, counted in the tile programs, and held to what parts take."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest
from linalg_cases import build_kernel

from xcc._mlir import ir
from xcc.dialects import xt
from xcc.passes.base import PassContext
from xcc.passes.linalg.kernel.domain import domain, volume
from xcc.passes.linalg.kernel.kernel import Kernel
from xcc.passes.linalg.kernel.kernel_reader import read
from xcc.passes.linalg.peel_tails import PeelTails
from xcc.passes.linalg.schedule.schedule import Schedule
from xcc.passes.linalg.tile import Tile
from xcc.passes.xt_to_linalg.xt_to_linalg import XtToLinalg
from xcc.targets.cpu.chip import CHIPS
from xcc.targets.cpu.repeats import busiest, operations
from xcc.targets.cpu.strategy import configure

WORSE = 3


def norm(axes: list[int]) -> Any:
    """A sum, the sum of squares about it, and an operand that keeps dims apart."""
    def body(x: Any, scale: Any) -> Any:
        d = xt.sub(x, xt.reduce(x, kind="sum", axes=axes, keepdims=True))
        return xt.mul(xt.div(d, xt.reduce(xt.mul(d, d), kind="sum", axes=axes, keepdims=True)), scale)

    return body


def softmax(axes: list[int]) -> Any:
    def body(x: Any, scale: Any) -> Any:
        e = xt.exp(xt.sub(x, xt.reduce(x, kind="max", axes=axes, keepdims=True)))
        return xt.mul(xt.div(e, xt.reduce(e, kind="sum", axes=axes, keepdims=True)), scale)

    return body


def kernel_of(body: Any, *shapes: tuple[int, ...]) -> tuple[Any, Kernel]:
    module, _ = build_kernel(body, [np.zeros(s, np.float32) for s in shapes])
    XtToLinalg().run(module, PassContext())
    return module, read(module.body.operations[0])


def counted(module: Any) -> int:
    """Elements of float arithmetic of the tile program, which has static loops, in its first chunk times chunks."""
    def number(v: Any) -> int:
        if isinstance(v.owner, ir.Block):
            return 0
        op = v.owner
        if op.name == "arith.constant":
            return int(op.attributes["value"].value)
        a, b = map(number, op.operands)
        return {"arith.addi": a + b, "arith.minsi": min(a, b), "arith.subi": a - b}[op.name]

    def of(block: Any) -> int:
        total = 0
        for op in (o.operation for o in block.operations):
            if op.name == "scf.forall":
                ends, steps = (list(ir.DenseI64ArrayAttr(op.attributes[k])) for k in ("staticUpperBound", "staticStep"))
                total += prod(-(-e // s) for e, s in zip(ends, steps, strict=True)) * of(op.regions[0].blocks[0])
            elif op.name == "scf.for":
                low, high, step = map(number, list(op.operands)[:3])
                total += -(-(high - low) // step) * of(op.regions[0].blocks[0])
            elif op.name.startswith(("arith.", "math.")) and op.name.endswith(("f", "exp")):
                kind = op.results[0].type
                cost = 10 if op.name.startswith("math.") else 1
                total += cost * (prod(ir.VectorType(kind).shape) if isinstance(kind, ir.VectorType) else 1)
        return total

    return of(module.body.operations[0].regions[0].blocks[0])


@pytest.mark.parametrize("body", [norm, softmax])
@pytest.mark.parametrize("block", [(1, 0, 0), (1, 16, 0), (1, 4, 0), (2, 64, 0), (4, 0, 0), (1, 8, 128)])
def test_the_estimate_is_what_the_loops_do(body: Any, block: tuple[int, ...]) -> None:
    module, kernel = kernel_of(body([1, 2]), (4, 64, 256), (256,))
    schedule = Schedule(block, (1, 1, 32), (0, 1, 2), ((1, 64), (1, 64)))
    estimated = operations(kernel, domain(kernel), schedule)
    with module.context:
        module.body.operations[0].attributes["xcc.config"] = schedule.to_attr()
    PeelTails().run(module, PassContext())
    Tile().run(module, PassContext(chip=CHIPS["znver5"]))
    assert 0.95 < estimated / counted(module) < 1.05


def test_an_order_that_makes_a_reduction_again() -> None:
    """Sums of columns, inside a loop over rows."""
    _, kernel = kernel_of(norm([0]), (64, 512), (64, 1))
    place = domain(kernel)
    rows, columns = (Schedule((0, 0), (1, 32), order, ((1,), (1,))) for order in ((0, 1), (1, 0)))
    assert operations(kernel, place, rows) > 20 * operations(kernel, place, columns)


@pytest.mark.parametrize("cores", [1, 2, 16, 96])
def test_no_schedule_takes_much_longer_than_parts(cores: int) -> None:
    rng = np.random.default_rng(3)
    chip = replace(CHIPS["znver5"], cores=cores)
    for _ in range(40):
        shape = tuple(int(rng.choice(sizes)) for sizes in ((1, 2, 5, 64), (1, 3, 16, 96, 256), (7, 64, 100, 256, 512)))
        axes = [[2], [1, 2], [0, 1, 2]][int(rng.integers(3))]
        scale = [shape[2:], (*shape[1:2], 1), (shape[0], 1, 1)][int(rng.integers(3))]
        _, kernel = kernel_of((norm, softmax)[int(rng.integers(2))](axes), shape, scale)
        place = domain(kernel)
        schedule = configure(kernel, chip)
        once = operations(kernel, place, replace(schedule, block=(0,) * len(place.dims)))
        rows = max(volume(op.results[0].dims) for op in kernel.ops if op.is_reduction)
        least = once / (min(rows, cores) if schedule.parallel else 1)
        assert busiest(kernel, place, schedule, cores) < WORSE * least, (shape, axes, scale, schedule)
