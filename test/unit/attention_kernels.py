"""Attention as tile programs and as the code of threads, run by the interpreter of gpu-stage kernels."""

from __future__ import annotations

import numpy as np
from schedules import changed

from xcc import symbolic
from xcc._mlir import func_d, ir
from xcc.context import shared_context
from xcc.dialects import xt
from xcc.dialects.xt.base import dims_from_attr
from xcc.interpreter.kernel import run_kernel
from xcc.interpreter.machine import Options
from xcc.passes.base import PassContext, parse_pass
from xcc.passes.linalg.schedule.schedule import Schedule
from xcc.passes.upstream import Upstream
from xcc.targets.amdgcn.chip import CHIPS as AMD_CHIPS
from xcc.targets.amdgcn.pipeline import kernel_pipeline as amd_pipeline
from xcc.targets.gpu_module import kernel_functions, kernel_launches
from xcc.targets.nvptx.chip import chips
from xcc.targets.nvptx.pipeline import kernel_pipeline

CHIPS = {**chips(), **AMD_CHIPS}
RNG = np.random.default_rng(3)
TO_TILES = ("xt-decompose{{fused=true}}", "xt-to-linalg", "configure{{target={target}}}", "split-rows",
            "tile")


def normal(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def build(arrays, dims, attributes, attention=None):
    """@main with one attention; `dims` are the symbolic shapes of its inputs, None where static. `attention` makes it
    of these, where they are not its operands."""
    with shared_context(), ir.Location.unknown():
        module = ir.Module.create()
        shapes = [tuple(a.shape) if d is None else tuple(symbolic.parse(n) if isinstance(n, str) else n for n in d)
                  for a, d in zip(arrays, dims, strict=True)]
        kinds = [xt.TensorType(s, xt.dtype_name(a.dtype)).mlir() for s, a in zip(shapes, arrays, strict=True)]
        with ir.InsertionPoint(module.body):
            f = func_d.FuncOp("main", (kinds, []))
            with ir.InsertionPoint(f.add_entry_block()):
                made = (attention or xt.attention)(*f.arguments, **attributes)
                outs = list(made) if isinstance(made, tuple) else [made]
                func_d.ReturnOp(outs)
            f.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(kinds, [v.type for v in outs]))
        return module


def dispatched(module, sizes):
    """The values of the kernel's symbols, as @main gives them, and which of its arguments are the kernel's."""
    main = module.body.operations[0].regions[0].blocks[0]
    (dispatch,) = (op for op in main.operations if op.name == "xtv.dispatch")
    return [symbolic.evaluate(symbolic.parse(s.value), sizes) for s in dispatch.attributes["symbols"]], \
        [ir.BlockArgument(v).arg_number for v in dispatch.operands]


def to_tiles(module, ctx, target="nvptx", schedule=None):
    """The kernels of `module` alone, as tile programs."""
    for f in list(module.body.operations):
        if "xt.kernel" not in f.attributes:
            f.operation.erase()
    for name in TO_TILES:
        parse_pass(name.format(target=target)).run(module, ctx)
        if name.startswith("configure") and schedule:
            for f in module.body.operations:
                f.attributes["xcc.config"] = changed(Schedule.from_attr(f.attributes["xcc.config"]),
                                                     **schedule).to_attr()
        for cleanup in ("canonicalize", "cse"):
            Upstream(pipeline=cleanup).run(module, ctx)


def run(module, arrays, out, sizes, chip="sm_80", **schedule):
    """Runs the only kernel of `module`; gives the texts of its tile program and of its per-thread code.

    schedule: entries that replace those which the strategy chose.
    """
    target = "nvptx" if chip in chips() else "amdgcn"
    ctx = PassContext(chip=CHIPS[chip])
    with module.context:
        parse_pass("form-kernels").run(module, ctx)
        symbols, order = dispatched(module, sizes)
        to_tiles(module, ctx, target, schedule)
        text = str(module)
        (kernel_pipeline() if target == "nvptx" else amd_pipeline(CHIPS[chip])).upto("gpu").run(module, ctx)
        functions = kernel_functions(module)
        names = [s.value for s in functions[0].attributes["xt.symbols"]]
        env = dict(zip(names, symbols, strict=True))
        dims = {key: [[symbolic.evaluate(d, env) for d in dims_from_attr(a)] for a in functions[0].attributes[key]]
                for key in ("xt.arg_dims", "xt.result_dims", "xt.scratch_dims") if key in functions[0].attributes}
        scratch = [np.full(d, np.nan, np.float32) for d in dims.pop("xt.scratch_dims", [])]
        views = [np.ascontiguousarray(a).reshape(d)
                 for a, d in zip([*(arrays[n] for n in order), out], sum(dims.values(), []), strict=True)]
        views = [v.view(np.int8) if v.dtype == np.bool_ else v for v in views]
        for launch in kernel_launches(module):
            run_kernel(module, launch.entry, (symbolic.evaluate(launch.grid[0], env), 1, 1), launch.block,
                       [*views, *scratch], symbols, Options(warp=CHIPS[chip].warp),
                       dynamic_shared=launch.shared_bytes)
    return text, str(module)
