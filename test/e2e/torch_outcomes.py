"""What the PyTorch frontend makes of traced samples, against eager."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from torch_device import Device
from torch_samples import Case

from xcc.dialects.xt.interpret import interpret
from xcc.facade import compile_to_artifact
from xcc.frontends.torch.graph import Ref
from xcc.frontends.torch.importer import load
from xcc.frontends.torch.layout import inverse
from xcc.options import CompileOptions
from xcc.runtime.model import Model

Array = np.ndarray[Any, Any]

TOLERANCES = {"float64": (1e-7, 1e-9), "float32": (1e-4, 1e-5), "float16": (1e-2, 1e-3), "bfloat16": (3e-2, 1e-2)}
"""By numpy's names of types: relative, absolute."""


def evaluated(case: Case) -> list[Array]:
    """What the xt dialect's own semantics give."""
    assert case.program is not None
    module, weights = load(case.program)
    with np.errstate(all="ignore"):
        return _in_order(case, interpret(module, _given(case), weights))


def compiled(case: Case, target: str = "cpu", chip: str = "", device: Device | None = None) -> list[Array]:
    """What the program gives when it is compiled here and run: by this process on its CPU, or by `device` on a GPU."""
    assert case.program is not None
    options = CompileOptions.make(target, chip=chip, isolate=False, cache=False, jobs=1)
    artifact = compile_to_artifact(case.program, options)
    names = [i.name for i in case.program.graph.inputs if i.kind == "user"]
    given = {i.name: x for i, x in zip(case.program.graph.inputs, _given(case), strict=False)}
    run = Model(artifact).run if device is None else partial(device.run, artifact)
    results = run({name: given[name] for name in names})
    return _in_order(case, [np.asarray(results[o.name]) for o in case.program.graph.outputs])


def _given(case: Case) -> list[Array]:
    """The inputs with their dims as they lie in memory."""
    assert case.program is not None
    return [x.transpose(i.order) if i.order else x
            for i, x in zip(case.program.graph.inputs, case.inputs, strict=False)]


def _in_order(case: Case, results: list[Array]) -> list[Array]:
    """The results with their dims as eager counts them, however they lie in memory."""
    assert case.program is not None
    return [r.transpose(inverse(o.order)) if o.order else r
            for r, o in zip(results, case.program.graph.outputs, strict=True)]


TIED = ("topk.default", "kthvalue.default", "median.dim", "nanmedian.dim", "mode.default", "sort.default",
        "sort.stable")
"""Ops that do not say which of equal elements they give the place of."""


def _elements(case: Case, results: list[Array]) -> list[Array]:
    """The results; instead of the places that an op of TIED gives of an operand's elements these elements."""
    assert case.program is not None
    graph = case.program.graph
    nodes = {n.name: dict(n.args) for n in graph.nodes if n.op.removeprefix("aten.") in TIED}
    inputs = dict(zip((i.name for i in graph.inputs), case.inputs, strict=False))
    out = list(results)
    for n, result in enumerate(graph.outputs):
        value = result.value
        if not isinstance(value, Ref) or value.index != 1 or value.name not in nodes:
            continue
        args = nodes[value.name]
        x = inputs.get(args["self"].name) if not args.get("stable") else None
        if x is not None and x.ndim:
            places = out[n] if out[n].ndim == x.ndim else np.expand_dims(out[n], args["dim"])
            out[n] = np.take_along_axis(x, places, args["dim"])
    return out


def difference(case: Case, results: list[Array]) -> str:
    """How the results differ from eager's; "" where they are equal within the tolerance of their type."""
    shapes = [(str(g.dtype), g.shape) for g in results], [(str(w.dtype), w.shape) for w in case.expected]
    if shapes[0] != shapes[1]:
        return f"results are {shapes[0]}, eager has {shapes[1]}"
    for n, (got, want) in enumerate(zip(_elements(case, results), _elements(case, case.expected), strict=True)):
        close = _close(got, want)
        if not np.all(close):
            at = tuple(int(i) for i in np.argwhere(~close)[0])
            return f"result {n}{list(at)} is {got[at]}, eager has {want[at]} ({int(np.sum(~close))} of {want.size})"
    return ""


def outcome(case: Case, results: Callable[[Case], list[Array]] = evaluated) -> str:
    """"" for a sample that is right, else what went wrong."""
    try:
        return difference(case, results(case))
    except Exception as e:
        return f"{type(e).__name__}: {' '.join(str(e).split())[:300]}"


def _close(got: Array, want: Array) -> Array:
    if str(want.dtype) not in TOLERANCES:
        return np.asarray(got == want)
    relative, absolute = TOLERANCES[str(want.dtype)]
    with np.errstate(all="ignore"):
        return np.isclose(got.astype(np.float64), want.astype(np.float64), relative, absolute, equal_nan=True)
