"""Cuts a graph into parts that xcc compiles and ops that stay in torch."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

import sympy
import torch
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase
from torch.utils import _pytree

from xcc.diagnostics import UserError
from xcc.frontends.torch.dtypes import NAMES
from xcc.frontends.torch.fx_facts import CHECKS, body_of, function_name, operand, source_of
from xcc.frontends.torch.groups import is_collective, is_compiled, is_wait, known_groups
from xcc.frontends.torch.pairs import IN_TORCH, meet_in_pairs
from xcc.frontends.torch.repeated import draw_of
from xcc.targets.base import get_target, target_names
from xcc.targets.hints import called

__all__ = ["Place", "partitioned", "place_of", "supported_ops", "target_for"]

KNOWN_DIMS = {"aten._pdist_forward.default": 0, "aten.linalg_solve_triangular.default": -1}
"""Ops that run in torch where this dim of their first operand is a size."""

LARGEST_FACTOR = 512
"""A Fourier transform of a multiple of a larger prime runs in torch: its matrix would have the prime's square."""


@cache
def supported_ops() -> frozenset[str]:
    """The ops that have a converter, by full name.

    The registry imports MLIR, which a process that finds everything in the cache has no use for: the process that will
    compile lists them, once for each version of xcc.
    """
    from xcc.cache import cache as store
    from xcc.process.isolation import converted_ops

    path = Path(store.folder()) / "models" / f"aten-ops-{store.compiler_version()}.list"
    try:
        return frozenset(path.read_text().split())
    except OSError:
        pass
    ops = converted_ops(".pt2")
    text = "\n".join(sorted(ops))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{id(text)}")
        partial.write_text(text)
        partial.replace(path)
    except OSError:
        pass        # it is listed again next time
    return ops


def partitioned(module: torch.fx.GraphModule, together: bool = True) -> tuple[Any, list[str]]:
    """`module` with its parts as submodules ``xcc_part_N``, and which ops xcc cannot compile: ``FILE:LINE: OP`` each.
    None, where all of it can be compiled.

    together: collectives are compiled; where they are not, they are torch's, and not listed, as waits for torch's own
    never are.
    """
    compiled = _Supported(together and known_groups(module.graph) is not None)
    meet_in_pairs(module, compiled)
    left = [n for n in module.graph.nodes if n.op == "call_function" and not compiled(n) and not _is_write(n)]
    if not left:
        return None, []
    missing: dict[str, None] = {}
    for node in left:
        if not node.meta.get(IN_TORCH) and (not is_collective(node) or together and not is_wait(node)):
            strange = "".join((*(f" of {name}" for name in sorted(_strange(node))),
                               *(f" with {n.target}" for n in _missing_inside(node)),
                               *[" of such sizes"] * (not _is_known(node, _name(node)))))
            missing.setdefault(f"{source_of(node)}: {node.target}{strange}".removeprefix(": "))
    cut = CapabilityBasedPartitioner(module, compiled, allows_single_node_partition=True)
    fused = cut.fuse_partitions(cut.propose_partitions(), prefix="xcc_part_")
    return fused, list(missing)


@dataclass(frozen=True)
class Place:
    """What a graph is compiled for, and the device that its tensors are on."""

    target: str
    device: torch.device


def place_of(module: torch.fx.GraphModule) -> Place:
    """Where the graph's tensors are; UserError where xcc has no target for that, or where they are on several devices.
    A graph for a GPU may be given tensors on the host and have some meanwhile, but not return one."""
    devices = {v.device for n in module.graph.nodes for v in _leaves(n.meta.get("val"))
               if isinstance(v, torch.Tensor) and v.device.type != "cpu"}
    output = next(n for n in module.graph.nodes if n.op == "output")
    returned = {n.meta["val"].device for n in output.all_input_nodes if isinstance(n.meta.get("val"), torch.Tensor)}
    devices |= returned
    if len(devices) > 1:
        raise UserError(f"the graph has tensors on {' and '.join(sorted(map(str, devices)))}: move the model and its "
                        "inputs to one device")
    device, = devices or {torch.device("cpu")}
    target = target_for(device)
    if not target:
        raise UserError(f"the graph has tensors on {device}; xcc compiles for cpu and cuda")
    return Place(target, device)


def target_for(device: torch.device) -> str:
    """The target for a device of torch's; "" where xcc has none."""
    maker = "hip" if device.type == "cuda" and torch.version.hip else device.type
    found = called(maker, map(get_target, target_names()))
    return found[0].name if len(found) == 1 else ""


def _leaves(value: Any) -> Any:
    return value if isinstance(value, tuple | list) else (value,)


class _Supported(OperatorSupportBase):
    """What the partitioner asks of each node. `together`: xcc compiles collectives."""

    def __init__(self, together: bool) -> None:
        self.together = together

    def is_node_supported(self, _modules: Mapping[str, Any], node: torch.fx.Node) -> bool:
        """Whether xcc compiles it; the graphs that an op takes go where the op goes."""
        if node.op == "get_attr":
            return body_of(node) is not None and all(map(self, node.users))
        return node.op == "call_function" and self(node)

    def __call__(self, node: torch.fx.Node) -> bool:
        if node.meta.get(IN_TORCH) or is_collective(node) and not (self.together and is_compiled(node)):
            return False
        return _supported(node)


def _is_write(node: torch.fx.Node) -> bool:
    """The last write into an input, which a graph that is compiled as a whole does in place."""
    return str(node.target) == "aten.copy_.default"


def _strange(node: torch.fx.Node) -> set[str]:
    """What xcc has not of the tensors that the node takes and gives: element types (complex, of most ops), layouts
    (sparse)."""
    if node.target is operator.getitem:
        return _strange(operand(node))
    if _is_size(node):
        return set()
    complex_too = _of_complex(node) in supported_ops()
    return {str(what).removeprefix("torch.") for t in _tensors(node)
            for what, known in ((t.dtype, t.dtype in NAMES or t.is_complex() and complex_too),
                                (t.layout, t.layout == torch.strided)) if not known}


def _tensors(node: torch.fx.Node) -> list[torch.Tensor]:
    """What the node takes and gives."""
    values = [n.meta.get("val") for n in (node, *node.all_input_nodes)]
    return [t for t in _pytree.tree_leaves(values) if isinstance(t, torch.Tensor)]


def _of_complex(node: torch.fx.Node) -> str:
    """The name of the op's converter for complex numbers."""
    return f"complex.{node.target}"


def _name(node: torch.fx.Node) -> str:
    return _of_complex(node) if any(t.is_complex() for t in _tensors(node)) else str(node.target)


def _supported(node: torch.fx.Node) -> bool:
    if _strange(node):
        return False
    draw = draw_of(node)
    if draw is not None:
        return str(draw.op) in supported_ops()
    if isinstance(node.target, torch._ops.OpOverload):
        name = _name(node)
        return _is_known(node, name) and name in supported_ops() or name.split(".")[1] in CHECKS or _is_size(node)
    if isinstance(node.target, torch._ops.HigherOrderOperator):
        return function_name(node.target) in supported_ops() and not _missing_inside(node)
    return node.target is operator.getitem or _is_size(node) or _is_number(node)


def _is_known(node: torch.fx.Node, name: str) -> bool:
    """Whether sizes that must be numbers are some that xcc takes."""
    if name in KNOWN_DIMS:
        return isinstance(operand(node).meta["val"].shape[KNOWN_DIMS[name]], int)
    if not name.startswith("complex.aten._fft"):
        return True
    whole = node.meta["val"] if "c2r" in name else operand(node).meta["val"]
    return all(isinstance(n := whole.shape[d], int) and max(sympy.primefactors(n), default=1) <= LARGEST_FACTOR
               for d in cast("tuple[int, ...]", node.args[1]))


def _missing_inside(node: torch.fx.Node) -> list[Any]:
    """The ops in the graphs that `node` takes that xcc cannot compile."""
    bodies = filter(None, map(body_of, node.all_input_nodes))
    return [n for body in bodies for n in body.graph.nodes if n.op == "call_function" and not _supported(n)]


def _is_size(node: torch.fx.Node) -> bool:
    """A Python number that the sizes decide."""
    return isinstance(node.meta.get("val"), torch.SymInt | int)


def _is_number(node: torch.fx.Node) -> bool:
    """Python's own arithmetic of numbers that are known when the model runs."""
    return function_name(node.target) in supported_ops()
