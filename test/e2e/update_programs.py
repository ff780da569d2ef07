"""Programs whose outputs update inputs, and what their runs are compared with."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiled import behind_poison, compare, compiled, module_of
from hypothesis import strategies as st

import xcc
from xcc._mlir import ir
from xcc.dialects import xt
from xcc.dialects.xt.interpret import interpret
from xcc.runtime.cuda_api import find_gpu
from xcc.runtime.program import Copy, Launch
from xcc.symbolic import Dim
from xcc.weight_files import write_weights

ROW = 4
TYPES = ("f32", "f32", "f32", "i64")


def program(body: Callable[..., Any], rows: Dim, updates: dict[int, int], state: Sequence[int] = ()) -> Any:
    """Two caches [rows, ROW], a row and a place to `body`; result n updates input ``updates[n]``."""
    shapes: list[tuple[Dim, ...]] = [(rows, ROW), (rows, ROW), (1, ROW), ()]
    return with_attributes(module_of(body, [xt.TensorType(s, t) for s, t in zip(shapes, TYPES, strict=True)]), updates,
                           state)


def with_attributes(module: Any, updates: dict[int, int], state: Sequence[int] = ()) -> Any:
    """`module`, whose result n updates input ``updates[n]``, and which holds the inputs of `state`."""
    with module.context:
        main = module.body.operations[0].operation
        for key, name, which in (("res_attrs", "xt.updates", {n: f"x{a}" for n, a in updates.items()}),
                                 ("arg_attrs", "xt.state", {n: f"first{n}" for n in state})):
            old = [{a.name: a.attr for a in ir.DictAttr(d)} for d in ir.ArrayAttr(main.attributes[key])]
            main.attributes[key] = ir.ArrayAttr.get([ir.DictAttr.get(
                d | ({name: ir.StringAttr.get(which[n])} if n in which else {})) for n, d in enumerate(old)])
    return module


def on_device(module: Any, weights: Any = None) -> Any:
    """Compiled for the GPU of this machine."""
    if find_gpu() is None:
        pytest.skip("there is no NVIDIA GPU on this machine")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "case.mlir")
        path.write_text(str(module))
        if weights is not None:
            write_weights(path.with_suffix(".safetensors"), weights)
        return xcc.compile(path, target="nvptx", cache=False)


def inputs(rows: int, seed: int = 0) -> list[Any]:
    rng = np.random.default_rng(seed)
    arrays = [rng.standard_normal(s).astype(np.float32) for s in ((rows, ROW), (rows, ROW), (1, ROW))]
    return [*map(behind_poison, arrays), np.int64(rng.integers(-2, rows + 2))]


def check(module: Any, updates: dict[int, int], rows: Sequence[int] = (6,)) -> Any:
    """Runs it; outputs are right, those that update an input are that very array, and other inputs are as before."""
    model = compiled(module)
    for n in rows:
        given = inputs(n, n)
        wanted = interpret(module, [a.copy() for a in given])
        before = [a.copy() for a in given]
        outputs = list(model.run({f"x{i}": a for i, a in enumerate(given)}).values())
        for got, want in zip(outputs, wanted, strict=True):
            compare(got, want)
        assert all(outputs[result] is given[argument] for result, argument in updates.items())
        for i in set(range(4)) - set(updates.values()):
            np.testing.assert_array_equal(given[i], before[i])
    return model


def written(model: Any) -> tuple[int, int]:
    """How many launches and copies a run has."""
    body = model.artifact.program.body
    return sum(isinstance(s, Launch) for s in body), sum(isinstance(s, Copy) for s in body)


def zero() -> Any:
    return xt.constant(0, dtype="i64")


def put(x: Any, row: Any, at: Any) -> Any:
    return xt.dynamic_update_slice(x, row, at, zero())


def scatter(x: Any, row: Any, at: Any) -> Any:
    return xt.scatter_nd(x, xt.reshape(at, shape=(1, 1)), row, reduction="add")


def elements(x: Any, row: Any, at: Any) -> Any:
    return xt.scatter_elements(x, xt.broadcast(xt.reshape(at, shape=(1, 1)), shape=(1, ROW)), row, axis=0)


def rows(x: Any, row: Any, at: Any) -> Any:
    """An index for all of a row."""
    return xt.scatter_elements(x, xt.reshape(at, shape=(1, 1)), row, axis=0, reduction="add")


def flat(x: Any, row: Any, at: Any) -> Any:
    """Through views."""
    shape = xt.shape_of(x)
    narrow = xt.reshape(x, shape=(shape[0] * ROW,))
    return xt.reshape(xt.dynamic_update_slice(narrow, xt.reshape(row, shape=(ROW,)), at), shape=shape)


UPDATES = (put, scatter, elements, rows, flat)


@st.composite
def graphs(draw: Any) -> tuple[Any, dict[int, int]]:
    """A body of a few ops on what is there so far, and its updates."""
    steps = [(draw(st.sampled_from([*UPDATES, None])), draw(st.integers(0, 99)), draw(st.integers(0, 99)))
             for _ in range(draw(st.integers(1, 5)))]
    picked = [draw(st.integers(0, 99)) for _ in range(draw(st.integers(2, 4)))]

    def body(c: Any, d: Any, row: Any, at: Any) -> Any:
        there = [c, d]
        for op, a, b in steps:
            x, y = there[-1 - a % len(there) % 2], there[b % len(there)]
            there.append(xt.add(x, y) if op is None else op(x, row, at))
        return tuple(there[-1 - n % min(4, len(there))] for n in picked)

    return body, draw(st.sampled_from([{0: 0}, {0: 1}, {0: 0, 1: 1}, {0: 1, 1: 0}]))


def number(value: float) -> Any:
    return xt.scalar(value, "f32")
