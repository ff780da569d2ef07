"""Tensors that an exported program holds under several names: one of them is enough.

torch.export lifts tensors that it meets while tracing as constants, also where they are buffers of the model: the keys
of a static cache that a Python object holds, and a buffer by another name. Behind the first write to one of two names
torch's own functionalization gives up on the program. And a constant that the program writes is state, as a buffer is.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import torch
from torch.export.graph_signature import InputKind

from xcc.diagnostics import UserError

__all__ = ["with_one_name_each"]

HELD = (InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


def with_one_name_each(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """`program` with each buffer and constant under one name, constants as buffers; itself where it is so already."""
    specs = program.graph_signature.input_specs
    first: dict[Any, Any] = {}
    others: dict[str, str] = {}         # placeholder -> the one that stays
    for spec in sorted((s for s in specs if s.kind in HELD), key=lambda s: HELD.index(s.kind)):
        place = _place(_tensor(program, spec.target), spec.target)
        kept = first.setdefault(spec.arg.name if place is None else place, spec)
        if kept is not spec:
            others[spec.arg.name] = kept.arg.name
    if not others and all(s.kind != InputKind.CONSTANT_TENSOR for s in specs):
        return program
    module = copy.deepcopy(program.graph_module)
    nodes = {n.name: n for n in module.graph.nodes if n.op == "placeholder"}
    for name, kept_name in others.items():
        nodes[name].replace_all_uses_with(nodes[kept_name])
        module.graph.erase_node(nodes[name])
    signature = copy.deepcopy(program.graph_signature)
    signature.input_specs = [
        replace(s, kind=InputKind.BUFFER, persistent=False) if s.kind == InputKind.CONSTANT_TENSOR else s
        for s in signature.input_specs if s.arg.name not in others]
    return program._update(module, signature)


def _tensor(program: torch.export.ExportedProgram, target: str) -> torch.Tensor:
    found = program.state_dict.get(target)
    return program.constants[target] if found is None else found


def _place(tensor: torch.Tensor, name: str) -> Any:
    """Where the elements lie; None where there are none."""
    if not tensor.numel():
        return None
    try:
        return tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride()
    except RuntimeError as e:       # torch itself runs such a program, on other numbers than its inputs
        raise UserError(f"the exported program holds '{name}', a tensor of torch.export's trace, in place of what is "
                        "computed: torch.func.grad, vjp and jacobians are not exported. Compile the function with "
                        "torch.compile(backend='xcc')") from e
