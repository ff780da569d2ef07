"""Checks of what a program that comes from a file says of its updates and its state."""

from __future__ import annotations

from xcc.runtime.program import Program

__all__ = ["update_problem"]


def update_problem(p: Program) -> tuple[str, str] | None:
    """What is wrong with the updates and states of `p`, and where; its buffers are good by themselves."""
    for output, source in p.updates:
        if not (output in p.outputs and source in p.inputs):
            return "program.updates", f"buffers {output} and {source} are no output and input"
        b, a = p.buffers[output], p.buffers[source]
        if (b.kind, b.base, b.offset, b.shape, b.dtype) != ("alias", source, 0, a.shape, a.dtype) or not b.name:
            return "program.updates", f"the output {output} is not the memory of the input {source}"
    if len({source for _, source in p.updates}) < len(p.updates):
        return "program.updates", "an input is updated twice"
    held = [i for i, b in enumerate(p.buffers) if b.kind == "state"]
    if sorted(s.buffer for s in p.states) != held or len({s.name for s in p.states}) < len(held):
        return "program.states", "are not the buffers of kind state, each once and with a name of its own"
    return None
