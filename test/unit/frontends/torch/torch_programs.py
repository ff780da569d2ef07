"""Helps tests of PyTorch programs: capture, import, and run by the xt dialect's own semantics."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree

from xcc._mlir import ir
from xcc.context import shared_context
from xcc.dialects.xt.interpret import interpret
from xcc.frontends.torch.capture import capture_export, capture_fx
from xcc.frontends.torch.dtypes import to_numpy
from xcc.frontends.torch.importer import load
from xcc.frontends.torch.keep import aot_decompositions
from xcc.frontends.torch.layout import inverse
from xcc.frontends.torch.program import TorchProgram


def exported(model: Any, args: tuple[Any, ...], **options: Any) -> TorchProgram:
    """`model` exported with `args` and captured."""
    return capture_export(torch.export.export(model, args, **options))


def traced(f: Any, args: tuple[Any, ...], sizes: str = "symbolic") -> TorchProgram:
    """The ATen ops that `f` dispatches to, as AOTAutograd hands them on; `sizes` are symbolic, or fake: fixed."""

    def flat(*tensors: Any) -> list[Any]:
        return [t for t in _pytree.tree_leaves(f(*tensors)) if isinstance(t, torch.Tensor)]

    module = _graph(flat, args, sizes)
    if any(map(writes, module.graph.nodes)):
        module = _graph(torch.func.functionalize(module), args, sizes)
    return capture_fx(module)


def _graph(f: Any, args: tuple[Any, ...], sizes: str) -> Any:
    module = make_fx(f, aot_decompositions(), tracing_mode=sizes, _allow_non_fake_inputs=True)(*args)
    module.graph.eliminate_dead_code()
    return module


def writes(node: Any) -> bool:
    """Whether it is a write into a tensor, such as a decomposition, or a gradient of torch's, leaves."""
    return isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable


def gradients(f: Any) -> Any:
    """The function of gradients: of a sum over what `f` gives, weighted by what differs from element to element."""

    def of(*tensors: Any) -> list[Any]:
        leaves = [t.detach().requires_grad_(t.is_floating_point()) for t in tensors]
        outs = [o for o in _pytree.tree_leaves(f(*leaves)) if isinstance(o, torch.Tensor) and o.requires_grad]
        weights = [torch.cos(torch.arange(o.numel(), dtype=o.dtype)).reshape(o.shape) for o in outs]
        wanted = [t for t in leaves if t.requires_grad]
        return list(torch.autograd.grad(outs, wanted, weights))

    return of


def evaluated(program: TorchProgram, args: tuple[Any, ...], seed: int = 7) -> list[np.ndarray[Any, Any]]:
    """What the imported module returns for the flat tensors of `args`; mutated buffers come first.

    `seed` is that of random numbers, where the program draws some.
    """
    with shared_context(), ir.Location.unknown():
        module, weights = load(program)
    state = [program.weights[i.target] for i in program.graph.inputs if i.mutated and i.target]
    flat = [to_numpy(t) for t in _pytree.tree_leaves(args) if isinstance(t, torch.Tensor)]
    seeds = [np.int64(seed) for i in program.graph.inputs if i.kind == "seed"]
    results = interpret(module, [*state, *flat, *seeds], weights)
    return [r.transpose(inverse(o.order)) if o.order else r
            for r, o in zip(results, program.graph.outputs, strict=True)]


def check(model: Any, args: tuple[Any, ...], *others: tuple[Any, ...], tolerance: float = 1e-5,
          **options: Any) -> TorchProgram:
    """The captured `model`, which gives what eager gives, for `args` and `others`."""
    program = exported(model, args, **options)
    for given in (args, *others):
        expected = [to_numpy(torch.as_tensor(t)) for t in _pytree.tree_leaves(model(*given))]
        updates = sum(bool(o.updates) for o in program.graph.outputs)
        compare(evaluated(program, given)[updates:], expected, tolerance)
    return program


def check_traced(f: Any, *args: Any, sizes: str = "symbolic", tolerance: float = 1e-5,
                 others: tuple[tuple[Any, ...], ...] = ()) -> TorchProgram:
    """What `f` dispatches to, which gives what `f` gives, for `args` and `others`."""
    program = traced(f, args, sizes)
    for given in (args, *others):
        expected = [to_numpy(t) for t in _pytree.tree_leaves(f(*given)) if isinstance(t, torch.Tensor)]
        compare(evaluated(program, given), expected, tolerance)
    return program


def imported(program: TorchProgram) -> str:
    """The text of the imported module."""
    with shared_context(), ir.Location.unknown():
        return str(load(program)[0])


def compare(results: list[Any], expected: list[Any], tolerance: float) -> None:
    """Element types, shapes and values."""
    for want, got in zip(expected, results, strict=True):
        assert got.dtype == want.dtype and got.shape == want.shape
        wide = np.float64 if want.dtype.kind not in "biu" else want.dtype
        np.testing.assert_allclose(got.astype(wide), want.astype(wide), rtol=tolerance, atol=tolerance)
