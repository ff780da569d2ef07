"""The host program as JSON and the checks on what an artifact carries."""

import copy
import json
import re

import pytest

from xcc.diagnostics import UserError
from xcc.runtime.program import (
    BindSymbol,
    Buffer,
    Collective,
    Copy,
    For,
    If,
    InputValue,
    Launch,
    Program,
    SetScalar,
    State,
    While,
    to_json,
)
from xcc.runtime.program_reader import program_from_json
from xcc.symbolic import parse


def sample():
    n = parse("n")
    return Program(
        buffers=(
            Buffer("input", (n, 4), "f32", "x"),
            Buffer("output", (n, 4), "f32", "y"),
            Buffer("temp", (n, 4), "f32"),
            Buffer("alias", (4,), "f32", base=2, offset=parse("16*i")),
            Buffer("temp", (), "i1"),
            Buffer("temp", (2,), "i64"),
            Buffer("weight", (4,), "f32", "w"),
            Buffer("temp", (parse("k"),), "f32"),
            Buffer("kept", (8,), "f32"),
            Buffer("input", (2,), "i32", "shape"),
            Buffer("alias", (n, 4), "f32", "new", base=0),
            Buffer("state", (4,), "f32", "held"),
        ),
        body=(
            Launch("add_0", (0, 6, 2), (n,), (parse("floordiv(n + 3, 4)"), 1, 1), (128, 1, 1), 64),
            SetScalar(5, (n, 3)),
            BindSymbol("k", 5, 1, n),
            For("i", n, (Launch("step", (3, 7), (parse("k"),)),)),
            If(4, (Copy(0, 2),), ()),
            While((Launch("cond", (2, 4), (n,)),), 4, (Copy(0, 2),)),
            Copy(2, 1),
            Collective("all_reduce", 1, 1, ("dp", "tp"), "add"),
            Collective("permute", 2, 1, ("pp",), pairs=((0, 1), (1, 0))),
            Collective("all_gather", 6, 8, ("tp",)),
        ),
        inputs=(0, 9), outputs=(1, 10), symbols=("n", "s"), bounds={"n": (1, 64)},
        setup=(Launch("double", (6, 8), ()),), values=(InputValue("s", 9, 1),), updates=((10, 0),),
        states=(State("held", 11, "w"),))


def test_round_trip():
    text = json.dumps(to_json(sample()))
    assert program_from_json(json.loads(text)) == sample()


FAULTS = [
    (lambda d: d.pop("buffers"), "'buffers' is missing"),
    (lambda d: d.update(extra=1), "unknown key 'extra'"),
    (lambda d: d["buffers"][0].update(dtype="f33"), "unknown dtype 'f33'"),
    (lambda d: d["buffers"][0].update(shape=[-1, 4]), "negative"),
    (lambda d: d["buffers"][0].update(shape=["floordiv(1, 0)"]), "is not a dimension"),
    (lambda d: d["buffers"][0].update(shape=["(" * 4000]), "is not a dimension"),
    (lambda d: d["buffers"][0].update(shape=[True]), "expected an integer"),
    (lambda d: d["buffers"][0].update(shape=["m"]), "symbol 'm' has no value"),
    (lambda d: d["buffers"][3].update(base=3), "does not come before"),
    (lambda d: d["values"][0].update(name="t"), "program.values[0]: 't' is none of the program's symbols"),
    (lambda d: d["values"][0].update(source=1), "program.values[0]: buffer 1 is no input"),
    (lambda d: d["values"][0].update(source=99), "program.values[0]: buffer 99 is no input"),
    (lambda d: d["values"][0].update(source=0, index=0), "program.values[0]: there is no integer 0 in buffer 0"),
    (lambda d: d["values"][0].update(index=2), "program.values[0]: there is no integer 2 in buffer 9"),
    (lambda d: d["values"][0].update(index=-1), "program.values[0]: there is no integer -1 in buffer 9"),
    (lambda d: d["buffers"][6].update(name=""), "without a name"),
    (lambda d: d["updates"].append([0, 10]), "program.updates: buffers 0 and 10 are no output and input"),
    (lambda d: d.update(updates=[[10, 99]]), "program.updates: buffers 10 and 99 are no output and input"),
    (lambda d: d["buffers"][10].update(dtype="i32"), "the output 10 is not the memory of the input 0"),
    (lambda d: d.update(updates=[[10]]), "expected a pair of integers"),
    (lambda d: d.update(updates=[[10, 0], [10, 0]]), "an input is updated twice"),
    (lambda d: d.update(updates=[]), "is of kind alias"),
    (lambda d: d["buffers"][10].update(offset=4), "the output 10 is not the memory of the input 0"),
    (lambda d: d["buffers"][10].update(name=""), "the output 10 is not the memory of the input 0"),
    (lambda d: d.update(states=[]), "are not the buffers of kind state"),
    (lambda d: d["states"][0].update(buffer=2), "are not the buffers of kind state"),
    (lambda d: d["states"].append(d["states"][0]), "are not the buffers of kind state"),
    (lambda d: d["buffers"][11].update(shape=["n"]), "is state, but its shape is not known"),
    (lambda d: d.update(inputs=[1]), "is of kind output"),
    (lambda d: d.update(inputs=[99]), "there is no buffer 99"),
    (lambda d: d["body"][0].update(kernel="../x"), "is not a kernel name"),
    (lambda d: d["body"][0].update(buffers=[0, 99]), "there is no buffer 99"),
    (lambda d: d["body"][0].update(symbols=["k"]), "symbol 'k' has no value"),
    (lambda d: d["body"][0].update(op="Exec"), "is not a statement"),
    (lambda d: d["body"][1].update(values=[1, 2, 3]), "of another size"),
    (lambda d: d["body"][2].update(index=2), "reads element 2 of 2"),
    (lambda d: d["body"][3].update(counter="n"), "is taken"),
    (lambda d: d["body"][4].update(condition=5), "is no scalar condition"),
    (lambda d: d["buffers"][8].update(shape=["n"]), "is kept, but its shape is not known"),
    (lambda d: d["setup"][0].update(buffers=[6, 99]), "there is no buffer 99"),
    (lambda d: d["setup"][0].update(buffers=[6, 3]), "program.setup[0]: buffer 3 is neither a weight nor kept"),
    (lambda d: d["setup"][0].update(symbols=["n"]), "symbol 'n' has no value"),
    (lambda d: d["body"][7].update(kind="all_sum"), "'all_sum' is not one of all_reduce"),
    (lambda d: d["body"][7].update(combine="sub"), "'sub' is not one of"),
    (lambda d: d["body"][7].update(combine=""), "program.body[7]: all_reduce with combine ''"),
    (lambda d: d["buffers"][1].update(dtype="i16"), "all_reduce with combine 'add' of i16"),
    (lambda d: d["body"][7].update(axes=[]), "names no axes, or one twice"),
    (lambda d: d["body"][7].update(axes=["tp", "tp"]), "names no axes, or one twice"),
    (lambda d: d["body"][7].update(target=99), "there is no buffer 99"),
    (lambda d: d["body"][7].update(target=5), "buffers 1 and 5 differ in their element types"),
    (lambda d: d["body"][7].update(root=1), "all_reduce with pairs or a root"),
    (lambda d: d["body"][8].update(pairs=[[0, 1], [0, 2]]), "a rank sends or receives twice"),
    (lambda d: d["body"][8].update(pairs=[[0, -1]]), "names a negative place"),
    (lambda d: d["body"][8].update(pairs=[[0]]), "expected a pair of integers"),
    (lambda d: d["body"][8].update(target=2), "permute from a buffer to itself"),
    (lambda d: d["body"][8].update(source=6, target=8), "permute from 16 to 32 bytes"),
    (lambda d: d["body"][9].update(source=8, target=6), "all_gather from 32 to 16 bytes"),
    (lambda d: d.update(setup=[7]), "program.setup[0]: expected an object"),
]


@pytest.mark.parametrize(("damage", "message"), FAULTS)
def test_damaged(damage, message):
    data = copy.deepcopy(json.loads(json.dumps(to_json(sample()))))
    damage(data)
    with pytest.raises(UserError, match=re.escape(message)):
        program_from_json(data)


def test_alias_past_the_end():
    p = Program((Buffer("temp", (4,), "f32"), Buffer("alias", (4,), "f32", base=0, offset=4)), (), (), ())
    with pytest.raises(UserError, match="reaches 4 bytes past"):
        program_from_json(to_json(p))


def test_nesting_is_limited():
    inner = {"op": "If", "condition": 0, "then": [], "orelse": []}
    for _ in range(50):
        inner = {"op": "If", "condition": 0, "then": [inner], "orelse": []}
    data = to_json(Program((Buffer("temp", (), "i1"),), (), (), ()))
    data["body"] = [inner]
    with pytest.raises(UserError, match="nested too deep"):
        program_from_json(data)
