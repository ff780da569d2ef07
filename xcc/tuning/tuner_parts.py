"""Finds into how many parts the sums of a model's matrix products are best cut (``split-contractions``).

Each product of static sizes is compiled for each number of parts, COPIES times in one model: one left operand, which
the cache holds like what was just made, and right ones of their own, which it does not, like weights. The model runs on
this machine's GPU. A number that takes less than FASTER of the time of the pass's own choice becomes an entry.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from xcc.diagnostics import CompilerBug, UserError
from xcc.driver.sources import load_source
from xcc.driver.stages import Clock, run_stage
from xcc.options import CompileOptions
from xcc.passes.base import PassContext
from xcc.passes.linalg.schedule.tuning import Database
from xcc.passes.pipeline import Pipeline, Stage
from xcc.targets.base import Chip, chip_of, get_target

__all__ = ["tune_parts"]

FASTER = 0.97
RUNS = 30
COPIES = 6          # the first of them finds its left operand in memory
PASS = "split-contractions"


def _model(a: str, b: str, y: str, attributes: str) -> str:
    """COPIES products of an operand of type tensor<a> with one of tensor<b> each."""
    numbers = range(COPIES)
    operands = [f'%a: tensor<{a}> {{xt.name = "a"}}', *(f'%b{n}: tensor<{b}> {{xt.name = "b{n}"}}' for n in numbers)]
    results = [f'tensor<{y}> {{xt.name = "y{n}"}}' for n in numbers]
    body = [f'  %y{n} = "xt.dot_general"(%a, %b{n}) {{{attributes}}} : (tensor<{a}>, tensor<{b}>) -> tensor<{y}>'
            for n in numbers]
    made, kinds = ", ".join(f"%y{n}" for n in numbers), ", ".join([f"tensor<{y}>"] * COPIES)
    return "\n".join((f"func.func @main({', '.join(operands)}) -> ({', '.join(results)}) {{", *body,
                      f"  return {made} : {kinds}", "}"))



def tune_parts(model: Any, options: CompileOptions, seconds: float, note: Callable[[str], None]) -> Database:
    """The entries found for the products of `model` in about `seconds`."""
    found = Database()
    target = get_target(options.target)
    if PASS not in target.pipeline(options).names():
        return found
    chip = chip_of(target, options.chip)
    end = time.perf_counter() + seconds
    for key, (text, choices) in _products(model, options, chip).items():
        if time.perf_counter() > end:
            note(f"{key}: no time was left")
            break
        usual = _seconds(text, options, 0)
        times = {parts: t for parts in (1, *choices) if (t := _seconds(text, options, parts)) is not None}
        if usual is None or not times:
            continue
        best = min(times, key=lambda p: (times[p], p))
        kept = times[best] >= FASTER * usual
        note(f"{key}: {usual * 1e6:.1f} us" + (", kept" if kept else f" -> {times[best] * 1e6:.1f} in {best} parts"))
        if not kept:
            found.entries[chip.name, key] = f"{{parts = {best} : i64}}"
    return found


def _products(model: Any, options: CompileOptions, chip: Chip) -> dict[str, tuple[str, tuple[int, ...]]]:
    """For each different product that can be cut: a model of it alone, and the numbers of parts."""
    from xcc.passes.xt.graph.rewrite import name_of, walk_ops
    from xcc.passes.xt.split_contractions import product_of

    source = load_source(model, options)
    plan = get_target(options.target).pipeline(options)
    plan = plan.after(source.stage) if source.stage else plan
    if PASS not in plan.names():
        return {}
    ctx = PassContext(weights=source.weights, chip=chip, options=options, verbose=lambda _line: None)
    run_stage(_before(plan, PASS), source.module, ctx, Clock(), "stage")
    out: dict[str, tuple[str, tuple[int, ...]]] = {}
    with source.module.context:
        for op in walk_ops(source.module):
            product = product_of(op) if name_of(op) == "dot_general" else None
            if product is not None and product.choices() and product.key not in out:
                types = [str(v.type).removeprefix("tensor<").removesuffix(">") for v in (*op.operands, *op.results)]
                attributes = ", ".join(f"{name} = {op.attributes[name]}" for name in op.attributes)
                out[product.key] = (_model(types[0], types[1], types[2], attributes), product.choices())
    return out


def _before(plan: Pipeline, name: str) -> Stage:
    """The passes of the first stage ahead of the one called `name`."""
    first = plan.stages[0]
    names = Pipeline((first,)).names()
    return Stage(first.name, first.passes[:names.index(name)])


def _seconds(text: str, options: CompileOptions, parts: int) -> float | None:
    """Median device seconds of a product of the model `text`, its sum in `parts` (0: as the pass chooses)."""
    import numpy as np

    from xcc.facade import compile_to_artifact
    from xcc.passes.xt.form_kernels import FormKernels
    from xcc.runtime.model import Model
    from xcc.tuning.tuner_bench import random_array

    plan = get_target(options.target).pipeline(options)
    if parts:
        plan = plan.replace(PASS, f"{PASS}{{parts={parts}}}")
    forming = next(p for stage in plan.stages for p in stage.passes if isinstance(p, FormKernels))
    plan = plan.replace("form-kernels", replace(forming, beside=0))     # each product adds its own parts
    with tempfile.TemporaryDirectory(prefix="xcc-parts-") as folder:
        path = Path(folder, "product.mlir")
        path.write_text(text)
        try:
            made = Model(compile_to_artifact(path, replace(options, fix=(), dims=()), plan))
            rng = np.random.default_rng(0)
            feeds = {i.name: random_array(tuple(d for d in i.shape if isinstance(d, int)), i.dtype, rng)
                     for i in made.inputs}
            return statistics.median(made.device_times(feeds, RUNS)) / COPIES
        except (UserError, CompilerBug, RuntimeError):
            return None
