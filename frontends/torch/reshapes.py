"""Reshapes that are views for some sizes alone, of tensors that the model writes.

    y = x * 2                       # lies as x does: [5, 3, 2] with strides [1, 5, 15], say
    y.reshape(-1, 3, 2).sin_()      # writes y where x.shape[1:] is [3, 2], and a copy of it elsewhere

A trace for all sizes takes such a reshape for a copy. Where one of the two is written and the other one is seen, the
frame is traced again, with torch's own guards of which sizes have a view.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import cast

from torch import Tensor
from torch._dynamo.exc import RestartAnalysis
from torch._dynamo.output_graph import OutputGraph
from torch.fx import Graph, GraphModule, Node
from torch.fx.experimental import _config as sizes

__all__ = ["guarded_reshapes", "of_copies_alone", "watched_reshapes"]

Compiler = Callable[..., object]

_NAMES = ("flatten", "ravel", "reshape", "reshape_as")


class _Reshapes:
    """Those of a frame that is traced which are copies for some sizes: the node, its operand and its result, and how
    often each had been written."""

    def __init__(self) -> None:
        self.guarded = False
        self.copies: list[tuple[Node, Tensor, Tensor, int, int]] = []

    def note(self, node: Node, made: object) -> None:
        source = _tensor_of(node.args[0]) if node.args else None
        if isinstance(source, Tensor) and isinstance(made, Tensor) and not source.is_inference() \
                and _memory(source) != _memory(made):
            self.copies.append((node, source, made, source._version, made._version))

    def are_seen(self, graph: Graph) -> bool:
        """Whether it would be told from a view: what is written of one is read of the other."""
        nodes = list(graph.nodes)
        given = {_memory(x) for node in nodes if node.op == "placeholder" and (x := _tensor_of(node)) is not None}
        last: dict[int, int] = {}       # the place of the last node that reads a memory
        for n, node in enumerate(nodes):
            last |= {_memory(x): n for x in map(_tensor_of, node.all_input_nodes) if x is not None}
        places = {node.name: n for n, node in enumerate(nodes)}
        for node, source, made, *versions in self.copies:
            for written, version, other in ((source, versions[0], made), (made, versions[1], source)):
                read = _memory(other) in given or last.get(_memory(other), 0) > places[node.name]
                if read and written._version != version:
                    return True
        return False


_CURRENT: ContextVar[_Reshapes | None] = ContextVar("reshapes", default=None)


@contextmanager
def watched_reshapes() -> Iterator[None]:
    """A frame is traced in here."""
    token = _CURRENT.set(_Reshapes())
    try:
        yield
    finally:
        _CURRENT.reset(token)


def guarded_reshapes(fake_value: Callable[..., object]) -> Callable[..., object]:
    """``get_fake_value`` of Dynamo's builder."""

    def value(node: Node, *args: object, **kwargs: object) -> object:
        frame = _CURRENT.get()
        name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
        if frame is None or name not in _NAMES or not sizes.backed_size_oblivious:
            return fake_value(node, *args, **kwargs)
        with sizes.patch(backed_size_oblivious=False) if frame.guarded else nullcontext():  # type: ignore[attr-defined]
            made = fake_value(node, *args, **kwargs)
        frame.note(node, made)
        return made

    return value


def of_copies_alone(compile_graph: Compiler) -> Compiler:
    """``OutputGraph.call_user_compiler``, for graphs in which no copy is to be a view."""

    def compiled(own: OutputGraph, module: GraphModule, *args: object, **kwargs: object) -> object:
        frame = _CURRENT.get()
        if frame is not None and not frame.guarded and frame.copies:
            seen = frame.are_seen(module.graph)
            frame.copies = []
            if seen:
                frame.guarded = True
                raise RestartAnalysis(restart_reason="a reshape is a view of what is written, for some sizes")
        return compile_graph(own, module, *args, **kwargs)

    return compiled


def _tensor_of(argument: object) -> Tensor | None:
    value = argument.meta.get("example_value") if isinstance(argument, Node) else None
    return value if isinstance(value, Tensor) else None


def _memory(x: Tensor) -> int:
    return cast(int, x.untyped_storage()._cdata)
