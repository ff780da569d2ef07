"""A compiled kernel as an artifact: a host program of one launch, which every executor runs."""

from __future__ import annotations

from xcc import symbolic, tile
from xcc._mlir import ir
from xcc.driver.link import link_program
from xcc.passes.base import PassContext
from xcc.passes.shared.updates import UPDATES
from xcc.passes.walk import ops_where
from xcc.runtime.artifact import Artifact
from xcc.runtime.program import Buffer, Launch, Program
from xcc.targets.base import get_target
from xcc.weights import WeightStore

__all__ = ["artifact_of", "written"]

_WRITERS = ("tile.store", "tile.scatter", *UPDATES)


def artifact_of(made: tile.Compiled) -> Artifact:
    """The artifact of a compiled kernel."""
    assert made.binary is not None
    ctx, target = PassContext(chip=made.chip, options=made.options), get_target(made.options.target)
    return link_program(made.program.name, host_program(made), WeightStore(), (made.binary,), target, ctx, {})


def host_program(made: tile.Compiled) -> Program:
    """One launch of the kernel. Arrays are its inputs; those that it writes to are outputs, too."""
    arrays = [p for p in made.parameters if p.is_buffer]
    places = tuple(range(len(arrays)))
    buffers = [Buffer("input", p.dims, made.program.dtypes[p.name], p.name) for p in arrays]
    updates = []
    for i in places:
        if arrays[i].name in written(made.program):
            updates.append((len(buffers), i))
            buffers.append(Buffer("alias", buffers[i].shape, buffers[i].dtype, buffers[i].name, i))
    launch = Launch(made.program.name, places, tuple(symbolic.sym(s.name) for s in made.symbols))
    return Program(tuple(buffers), (launch,), places, tuple(o for o, _ in updates), tuple(s.name for s in made.symbols),
                   updates=tuple(updates))


def written(program: tile.Program) -> set[str]:
    """The parameters that the program writes to."""
    func, parameters = program.func.operation, program.parameters
    arguments = list(func.regions[0].blocks[0].arguments)
    found: set[str] = set()
    for op in ops_where(func, lambda op: op.name in _WRITERS):
        buffer = op.operands[1]
        while isinstance(buffer.owner, ir.Operation):
            buffer = buffer.owner.operands[0]
        found.add(parameters[arguments.index(buffer)].name)
    return found
