"""Collectives apart from the caller's memory, which is another in each run: what has captured them stays as it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from xcc.runtime.program import Buffer, Collective, Copy, For, If, Program, Statement, While

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

    def visit(body: Iterable[Statement]) -> tuple[Statement, ...]:
        out: list[Statement] = []
        for s in body:
            if isinstance(s, Collective):
                out += apart(s)
            elif isinstance(s, If):
                out.append(replace(s, then=visit(s.then), orelse=visit(s.orelse)))
            elif isinstance(s, While):
                out.append(replace(s, before=visit(s.before), body=visit(s.body)))
            elif isinstance(s, For):
                out.append(replace(s, body=visit(s.body)))
            else:
                out.append(s)
        return tuple(out)

    body = visit(program.body)
    return replace(program, buffers=tuple(buffers), body=body) if len(buffers) > len(program.buffers) else program
