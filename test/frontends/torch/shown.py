"""Prints what tests of captures check: the graph as plain data, then the xt module with its locations."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import make_fx

from xcc._mlir import ir
from xcc.dialects import xt
from xcc.frontends.torch.capture import capture_export, capture_fx
from xcc.frontends.torch.importer import load
from xcc.frontends.torch.keep import aot_decompositions
from xcc.frontends.torch.program import TorchProgram


def exported(model: torch.nn.Module, *args: Any, **options: Any) -> None:
    """`model` as torch.export hands it on."""
    _show(type(model).__name__, capture_export(torch.export.export(model, args, **options)))


def traced(f: Any, *args: Any) -> None:
    """The FX graph of the ops of `f`, sizes symbolic, as torch.compile's backend gets it."""
    graph = make_fx(f, aot_decompositions(), tracing_mode="symbolic", _allow_non_fake_inputs=True)(*args)
    graph.graph.eliminate_dead_code()
    _show(f.__name__, capture_fx(graph))


def _show(name: str, program: TorchProgram) -> None:
    print(f"=== {name}")
    print(program.graph.text())
    with xt.context(), ir.Location.unknown():
        module, _ = load(program)
        print(module.operation.get_asm(enable_debug_info=True))
