"""Where results lie: whatever ``host.places`` says, the numbers are right or it is an error; passes can be left out."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from kernel_cases import functions, host_program, reference, run_block
from update_programs import inputs, program, put, with_attributes, zero

from xcc._mlir import ir
from xcc.diagnostics import UserError
from xcc.dialects import xt
from xcc.passes.base import PassContext
from xcc.passes.host.placement.places import PLACES, note_shares
from xcc.passes.pipeline import Stage
from xcc.passes.walk import ops_where
from xcc.passes.xt.form_kernels import FormKernels
from xcc.passes.xt.update_in_place import UpdateInPlace
from xcc.runtime.arena import walk
from xcc.runtime.numpy_executor import NumpyExecutor
from xcc.runtime.program import Copy, Program
from xcc.targets.front import main_stages
from xcc.weights import WeightStore

ROWS = 6


def loop(c: Any, d: Any, row: Any, at: Any) -> Any:
    one = xt.constant(1, dtype="i64")
    return xt.while_([zero(), c], lambda i, _: xt.compare(i, at, direction="lt"),
                     lambda i, a: [xt.add(i, one), put(a, row, i)])[1], xt.exp(d)


def steps(c: Any, d: Any, row: Any, at: Any) -> Any:
    def body(state: Any, slices: Any) -> Any:
        new = put(state[0], xt.reshape(slices[0], shape=(1, 4)), at)
        return [new], [xt.reduce(new, kind="sum", axes=(0,), keepdims=False)]
    return xt.scan([d], [c], body)


def branches(c: Any, d: Any, row: Any, at: Any) -> Any:
    new = xt.if_(xt.compare(at, zero(), direction="lt"), lambda: put(xt.exp(c), row, at), lambda: d)[0]
    return put(new, row, zero()), xt.add(c, d)


CASES: tuple[tuple[Callable[..., Any], dict[int, int]], ...] = (
    (lambda c, d, r, i: (put(c, r, i), xt.exp(c)), {0: 0}),
    (lambda c, d, r, i: (put(put(c, r, i), r, zero()), xt.exp(d)), {0: 0}),
    (lambda c, d, r, i: (put(xt.add(c, d), r, i), xt.add(d, r)), {0: 0, 1: 1}),
    (lambda c, d, r, i: (xt.sub(d, c), xt.add(put(c, r, i), c)), {0: 1}),
    (lambda c, d, r, i: (put(xt.cumulative(c, kind="sum", axis=0), r, i), d), {}),
    (loop, {0: 0}), (steps, {0: 1}), (branches, {0: 0}))


def kernels_formed(body: Callable[..., Any], updates: dict[int, int]) -> tuple[Any, list[Any], list[Any]]:
    """A module at stage kernels, inputs, and the results by numpy."""
    module, given = program(body, ROWS, updates), inputs(ROWS)
    want = reference(module, given)
    context = PassContext()
    UpdateInPlace().run(module, context)
    FormKernels().run(module, context)
    main = functions(module)["main"]
    shares = {}
    for op in ops_where(main, lambda op: op.name == "xtv.dispatch"):    # a kernel reads all, and then it writes
        types = [v.type for v in op.results]
        shares[xt.attrs_of(op).kernel] = [(n, r) for n, v in enumerate(op.operands) for r, t in enumerate(types)
                                          if v.type == t]
    note_shares(module, shares)
    return module, given, want


def checked(module: Any, stages: Sequence[Stage], given: Sequence[Any], want: Sequence[Any],
            main: Any = None) -> Program:
    """The host program of `main` (by default that of `module`), which gives what is wanted. A kernel in place finds the
    operand in its result, and writes nothing else."""
    store = WeightStore()
    made = host_program(main or module, store, stages)
    kernels = functions(module)
    in_place = {xt.attrs_of(op).kernel for op in ops_where(kernels["main"], lambda op: "xt.in_place" in op.attributes)}

    def kernel(name: str, buffers: Sequence[Any], symbols: Sequence[int]) -> None:
        block = kernels[name].regions[0].blocks[0]
        count = len(block.arguments)
        values, targets = [b.copy() for b in buffers[:count]], buffers[count:]
        if name in in_place:
            values[0] = targets[0].copy()
        for target, value in zip(targets, run_block(block, dict(zip(block.arguments, values, strict=True)), {}, {}),
                                 strict=True):
            target[...] = value

    with module.context:
        found = NumpyExecutor(made, {name: store[name] for name in store}, kernel).run([x.copy() for x in given])
    for one, other in zip(found, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)
    return made


def copies(made: Program) -> int:
    return sum(isinstance(s, Copy) for s in walk(made.body))


@pytest.mark.parametrize("case", range(len(CASES)))
def test_passes_can_be_left_out(case: int) -> None:
    module, given, want = kernels_formed(*CASES[case])
    placed, bare = (checked(module, stages, given, want) for stages in (main_stages(), main_stages()[1:]))
    assert copies(placed) < copies(bare)


def edited(module: Any, rng: random.Random, count: int) -> Iterator[Any]:
    """Copies of `module` of which one or two results lie elsewhere."""
    words = ["own", *(f"{kind} {n}" for kind in ("result", "operand") for n in range(3))]
    for _ in range(count):
        copy = ir.Module.parse(str(module))
        ops = ops_where(copy, lambda op: PLACES in op.attributes)
        for op in rng.sample(ops, min(len(ops), rng.randint(1, 2))):
            texts = [a.value for a in op.attributes[PLACES]]
            texts[rng.randrange(len(texts))] = rng.choice(words)
            op.attributes[PLACES] = ir.ArrayAttr.get([ir.StringAttr.get(t) for t in texts])
        yield copy


@pytest.mark.parametrize("case", range(len(CASES)))
def test_edited_places(case: int) -> None:
    module, given, want = kernels_formed(*CASES[case])
    obeyed = refused = 0
    with module.context:
        for p in main_stages()[0].passes:
            p.run(module, PassContext())
        for copy in edited(module, random.Random(case), 40):
            try:
                checked(module, main_stages()[1:], given, want, copy)
                obeyed += 1
            except UserError as e:
                assert PLACES in e.message and e.message.startswith("loc(")
                refused += 1
    assert obeyed and refused


def test_state_needs_no_place_in_the_artifact_where_it_is_zeros() -> None:
    module = with_attributes(program(lambda c, d, r, i: (put(c, r, i), xt.exp(d)), ROWS, {0: 0}), {0: 0}, (0,))
    FormKernels().run(module, PassContext())
    for value, initial in ((0.0, ""), (1.0, "first0")):
        store = WeightStore()
        store.add("first0", np.full((ROWS, 4), value, np.float32))
        assert [s.initial for s in host_program(module, store).states] == [initial]
