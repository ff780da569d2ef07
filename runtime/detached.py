"""Collectives apart from the caller's memory, which is another in each run: what has captured them stays as it is."""

from __future__ import annotations

from dataclasses import replace

from xcc.runtime.program import Buffer, Collective, Copy, Program, Statement, expanded

__all__ = ["detached"]


def detached(program: Program) -> Program:
    """`program` with a temporary and a copy for each operand of a collective that lies in an input or an output."""
    buffers = list(program.buffers)

    def moves(buffer: int) -> bool:
        return program.buffers[program.root(buffer)].kind in ("input", "output")

    def beside(buffer: int) -> int:
        buffers.append(Buffer("temp", program.buffers[buffer].shape, program.buffers[buffer].dtype))
        return len(buffers) - 1

    def apart(s: Collective) -> list[Statement]:
        source = beside(s.source) if moves(s.source) else s.source
        same = s.source == s.target
        target = source if same else beside(s.target) if moves(s.target) else s.target
        before = [Copy(s.source, source)] if source != s.source else []
        after = [Copy(target, s.target)] if target != s.target else []
        return [*before, replace(s, source=source, target=target), *after]

    body = expanded(program.body, lambda s: apart(s) if isinstance(s, Collective) else (s,))
    return replace(program, buffers=tuple(buffers), body=body) if len(buffers) > len(program.buffers) else program
