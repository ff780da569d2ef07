"""Host programs as IR: what is written is read again."""

import re

import pytest

from xcc._mlir import ir
from xcc.diagnostics import UserError
from xcc.passes.host.lowering.program_ops import read_program, write_program
from xcc.runtime.program import Buffer, Collective, Copy, Program
from xcc.symbolic import sym


def program():
    n = sym("n")
    return Program(
        buffers=(Buffer("input", (n, 4), "f32", "x"), Buffer("output", (n, 4), "f32", "y"),
                 Buffer("temp", (2, n, 4), "f32"), Buffer("temp", (n, 4), "f32")),
        body=(Collective("all_reduce", 0, 3, ("tp",), "add"), Collective("all_reduce", 3, 3, ("dp", "tp"), "max"),
              Collective("all_gather", 3, 2, ("tp",)), Collective("reduce_scatter", 2, 3, ("tp",), "min"),
              Collective("all_to_all", 0, 3, ("tp",)), Collective("permute", 3, 1, ("pp",), pairs=((0, 1), (1, 0))),
              Collective("broadcast", 1, 1, ("dp",), root=1), Copy(3, 1)),
        inputs=(0,), outputs=(1,), symbols=("n",))


def module_of(p):
    module = ir.Module.parse("func.func @main() { return }")
    write_program(next(iter(module.body.operations)).operation, p)
    return module


def test_collectives_are_written_and_read():
    with ir.Context(), ir.Location.unknown():
        assert read_program(module_of(program())) == program()


def test_a_collective_as_text():
    with ir.Context() as context, ir.Location.unknown():
        context.allow_unregistered_dialects = True
        text = str(module_of(program()))
        assert re.search(r'host.collective"\(%\d, %\d\) \{axes = \["tp"\], combine = "add", kind', text)
        assert read_program(ir.Module.parse(text)) == program()
        with pytest.raises(UserError, match=r"host.collective: program.body\[0\].*'all_sum' is not one of all_reduce"):
            read_program(ir.Module.parse(text.replace('"all_reduce"', '"all_sum"', 1)))
