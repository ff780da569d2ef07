# ruff: noqa: B905
"""Builds xt modules in tests, forms their kernels and runs them as host programs on numpy."""

import numpy as np

from xcc import symbolic
from xcc._mlir import func_d, ir
from xcc.context import shared_context
from xcc.dialects import xt
from xcc.driver.split import strip_kernels
from xcc.passes.base import PassContext
from xcc.passes.host.lowering.program_ops import read_program
from xcc.passes.pipeline import Pipeline
from xcc.passes.xt.form_kernels import FormKernels
from xcc.runtime.numpy_executor import NumpyExecutor
from xcc.targets.front import main_stages
from xcc.weights import WeightStore


def module_of(build, *types):
    """A module whose @main has arguments of `types` and returns what `build(*arguments)` does."""
    context = shared_context()
    with context, ir.Location.unknown():
        module = ir.Module.create()
        kinds = [t.mlir() for t in types]
        with ir.InsertionPoint(module.body):
            main = func_d.FuncOp("main", ir.FunctionType.get(kinds, []))
            entry = main.add_entry_block()
            with ir.InsertionPoint(entry):
                out = build(*entry.arguments)
                results = list(out) if isinstance(out, (tuple, list)) else [out]
                func_d.ReturnOp(results)
            main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(kinds, [r.type for r in results]))
    xt.verify(module)
    return module


def evaluate(op, env, values, weights):
    """Writes the results of one op into `values`."""
    cls = xt.op_class(op)
    if op.name == "xt.weight":
        out = weights[op.attributes["name"].value]
    elif op.name == "xt.dim":
        out = np.int64(symbolic.evaluate(xt.attrs_of(op).value[0], env))
    else:
        a = xt.attrs_of(op)
        for name, f in cls.attribute_fields.items():
            if f.kind == "dims":
                setattr(a, name, tuple(symbolic.evaluate(d, env) for d in getattr(a, name)))
        arrays = [tuple(values[v] for v in g) if isinstance(g, tuple) else None if g is None else values[g]
                  for g in xt.grouped_operands(op)]
        out = cls.evaluate(a, *arrays)
    for r, v in zip(op.results, out if isinstance(out, tuple) else (out,), strict=True):
        values[r] = np.asarray(v)


def run_block(block, arguments, env, weights):
    """The operands of the block's terminator; control flow included."""
    values = arguments
    ops = [op.operation for op in block.operations]
    for op in ops[:-1]:
        name = op.name.partition(".")[2]
        if name in CONTROL:
            out = CONTROL[name](op, values, env, weights)
            values.update(zip(op.results, out, strict=True))
        else:
            evaluate(op, env, values, weights)
    return [values[v] for v in ops[-1].operands]


def _if(op, values, env, weights):
    region = op.regions[0 if values[op.operands[0]].item() else 1]
    return run_block(region.blocks[0], dict(values), env, weights)


def _while(op, values, env, weights):
    state = [values[v] for v in op.operands]
    cond, body = (r.blocks[0] for r in op.regions)
    while run_block(cond, {**values, **dict(zip(cond.arguments, state))}, env, weights)[0].item():
        state = run_block(body, {**values, **dict(zip(body.arguments, state))}, env, weights)
    return state


def _scan(op, values, env, weights):
    a = xt.attrs_of(op)
    carried, xs = ([values[v] for v in g] for g in xt.grouped_operands(op))
    block, stacks = op.regions[0].blocks[0], [[] for _ in a.out_axes]
    steps = symbolic.evaluate(a.length[0], env)
    for i in range(steps):
        slices = [np.take(x, steps - 1 - i if r else i, axis=d) for x, d, r in zip(xs, a.axes, a.reverse)]
        out = run_block(block, {**values, **dict(zip(block.arguments, [*carried, *slices]))}, env, weights)
        carried = out[:len(carried)]
        for s, y in zip(stacks, out[len(carried):]):
            s.append(y)
    return [*carried, *(np.stack(s[::-1] if r else s, axis=d) for s, d, r in zip(stacks, a.out_axes, a.out_reverse))]


CONTROL = {"if": _if, "while": _while, "scan": _scan}


def functions(module):
    return {op.attributes["sym_name"].value: op.operation for op in module.body}


def symbol_values(types, inputs):
    return {str(d): n for t, x in zip(types, inputs) for d, n in zip(t.shape, x.shape) if not isinstance(d, int)}


def reference(module, inputs, weights=()):
    """@main by numpy, op by op."""
    block = functions(module)["main"].regions[0].blocks[0]
    types = [xt.TensorType.of(v) for v in block.arguments]
    with module.context:
        return run_block(block, dict(zip(block.arguments, inputs)), symbol_values(types, inputs), dict(weights))


def host_program(module, weights, stages=None):
    """The host program of `module`, which stays as it is."""
    with module.context:
        copy = ir.Module.parse(str(module))
        strip_kernels(copy)
        Pipeline(stages or main_stages()).run(copy, PassContext(weights=weights))
        return read_program(copy)


def program_results(module, inputs, weights):
    """`module` (stage kernels) lowered to a host program and run; kernels are evaluated op by op."""
    program = host_program(module, weights)
    kernels = functions(module)

    def kernel(name, buffers, symbols):
        block = kernels[name].regions[0].blocks[0]
        env = {f"d{i}": n for i, n in enumerate(symbols)}
        count = len(block.arguments)
        out = run_block(block, dict(zip(block.arguments, buffers[:count])), env, weights)
        targets = list(buffers[count:])
        if len(targets) > len(out):
            targets.pop()[...] = out[0].shape[-1]
            for target, value in zip(targets, out, strict=True):
                target[:value.size] = value.reshape(-1)
            return
        for target, value in zip(targets, out, strict=True):
            assert target.shape == value.shape
            assert target.dtype == value.dtype
            target[...] = value

    with module.context:
        executor = NumpyExecutor(program, weights, kernel)
        return executor.run(inputs), program


def check(build, types, inputs, *, weights=None, kernels=None, **options):
    """Forms the kernels of what `build` makes and compares the host program's results with numpy's.

    Returns the lists of ops of each kernel, in the order of dispatch.
    """
    store = WeightStore()
    for name, value in (weights or {}).items():
        store.add(name, value)
    module = module_of(build, *types)
    want = reference(module, inputs, {n: store[n] for n in store})
    FormKernels(**options).run(module, PassContext())
    xt.verify(module)
    got, _ = program_results(module, inputs, store)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-6)
    found = dispatched(module)
    if kernels is not None:
        assert found == kernels
    return found


def dispatched(module):
    """The ops (without constants) of each dispatched kernel, in order."""
    kernels = functions(module)
    out = []

    def visit(op):
        if op.name.endswith(".dispatch"):
            body = kernels[op.attributes["kernel"].value].regions[0].blocks[0]
            names = [o.operation.name.partition(".")[2] for o in body.operations]
            out.append(" ".join(n for n in names if n not in ("constant", "return")))
        return ir.WalkResult.ADVANCE

    kernels["main"].walk(visit)
    return out
