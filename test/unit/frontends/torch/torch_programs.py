"""Helps tests of PyTorch programs: capture, import, and run by the xt dialect's own semantics."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.utils import _pytree

from xcc._mlir import ir
from xcc.dialects import xt
from xcc.dialects.xt.interpret import interpret
from xcc.frontends.torch.capture import capture_export
from xcc.frontends.torch.dtypes import to_numpy
from xcc.frontends.torch.importer import load
from xcc.frontends.torch.program import TorchProgram


def exported(model: Any, args: tuple[Any, ...], **options: Any) -> TorchProgram:
    """`model` exported with `args` and captured."""
    return capture_export(torch.export.export(model, args, **options))


def evaluated(program: TorchProgram, args: tuple[Any, ...]) -> list[np.ndarray[Any, Any]]:
    """What the imported module returns for the flat tensors of `args`; mutated buffers come first."""
    with xt.context(), ir.Location.unknown():
        module, weights = load(program)
    state = [program.weights[i.target] for i in program.graph.inputs if i.mutated and i.target]
    flat = [to_numpy(t) for t in _pytree.tree_leaves(args) if isinstance(t, torch.Tensor)]
    return interpret(module, [*state, *flat], weights)


def check(model: Any, args: tuple[Any, ...], *others: tuple[Any, ...], tolerance: float = 1e-5, **options: Any) -> None:
    """The captured `model` gives what eager gives, for `args` and `others`."""
    program = exported(model, args, **options)
    for given in (args, *others):
        expected = [to_numpy(torch.as_tensor(t)) for t in _pytree.tree_leaves(model(*given))]
        updates = sum(bool(o.updates) for o in program.graph.outputs)
        results = evaluated(program, given)[updates:]
        for want, got in zip(expected, results, strict=True):
            assert got.dtype == want.dtype
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
