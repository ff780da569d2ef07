"""Dims that a model takes to be equal are checked when it runs."""

import numpy as np
import pytest
from kernel_cases import module_of

import xcc
from xcc.dialects import xt
from xcc.passes.xt.equal_dims import equal_dims, note_equal_dims
from xcc.runtime.program import Buffer, Program, to_json
from xcc.runtime.program_reader import program_from_json
from xcc.runtime.signature import solve_symbols
from xcc.symbolic import sym

N, M = sym("n"), sym("m")


def noted(build, *types):
    module = module_of(build, *types)
    note_equal_dims(module)
    return equal_dims(module, ("n", "m"))


def f32(*shape):
    return xt.TensorType(shape, "f32")


def test_operands_of_one_op():
    assert noted(lambda a, b: xt.add(xt.add(a, b), b), f32(N), f32(M)) == ((N, M),)
    assert noted(lambda a, b: xt.add(a, b), f32(N), f32(4)) == ((N, 4),)
    assert noted(lambda a, b: xt.add(a, b), f32(N, 1), f32(M)) == ()
    assert noted(lambda a, b: xt.concatenate(a, b, axis=0), f32(2, N), f32(3, M)) == ((N, M),)
    assert noted(lambda a, b: xt.dot_general(a, b, lhs_contract=(1,), rhs_contract=(0,)), f32(3, N),
                 f32(M, 2)) == ((N, M),)


def test_what_runs_only_sometimes_is_left_out():
    text = """
func.func @main(%c: tensor<i1> {xt.name = "c"}, %a: tensor<?xf32, ["n"]> {xt.name = "a"},
                %b: tensor<?xf32, ["m"]> {xt.name = "b"}) -> (tensor<?xf32, ["n"]> {xt.name = "y"}) {
  %0 = "xtv.if"(%c) ({
    %1 = "xt.add"(%a, %b) : (tensor<?xf32, ["n"]>, tensor<?xf32, ["m"]>) -> tensor<?xf32, ["n"]>
    "xtv.yield"(%1) : (tensor<?xf32, ["n"]>) -> ()
  }, {
    "xtv.yield"(%a) : (tensor<?xf32, ["n"]>) -> ()
  }) : (tensor<i1>) -> tensor<?xf32, ["n"]>
  return %0 : tensor<?xf32, ["n"]>
}"""
    from xcc.context import new_context, parse_module

    module = parse_module(text, new_context())
    note_equal_dims(module)
    assert "xt.equal" not in module.operation.attributes


def program(*equal):
    return Program((Buffer("input", (N,), "f32", "a"), Buffer("input", (M,), "f32", "b")), (), (0, 1), (), ("n", "m"),
                   equal=equal)


def test_sizes_are_compared_when_the_model_runs():
    p = program_from_json(to_json(program((N * 2, M + 3))))
    assert solve_symbols(p, [(4,), (5,)]) == {"n": 4, "m": 5}
    with pytest.raises(xcc.UserError, match=r"2\*n = 8 and m \+ 3 = 7 must be equal, as 'n' is 4 \(from dim 0 of input "
                                            r"'a'\), 'm' is 4 \(from dim 0 of input 'b'\)$"):
        solve_symbols(p, [(4,), (4,)])
    with pytest.raises(xcc.UserError, match="compile with that dim fixed to 1"):
        solve_symbols(program((N, M)), [(1,), (4,)])


@pytest.mark.parametrize(("equal", "what"), [([["n"]], "a pair has 1 dims"), ([["n", "q"]], "symbol 'q' has no value")])
def test_hostile_pairs_are_refused(equal, what):
    with pytest.raises(xcc.UserError, match=what):
        program_from_json(to_json(program()) | {"equal": equal})


def test_a_compiled_model_refuses_what_does_not_fit(tmp_path):
    path = tmp_path / "m.mlir"
    path.write_text("""
func.func @main(%a: tensor<?xf32, ["n"]> {xt.name = "a"}, %b: tensor<?xf32, ["m"]> {xt.name = "b"})
    -> (tensor<?xf32, ["n"]> {xt.name = "y"}) {
  %0 = "xt.add"(%a, %b) : (tensor<?xf32, ["n"]>, tensor<?xf32, ["m"]>) -> tensor<?xf32, ["n"]>
  return %0 : tensor<?xf32, ["n"]>
}""")
    model = xcc.compile(path)
    assert model(np.ones(3, np.float32), np.ones(3, np.float32)).tolist() == [2, 2, 2]
    with pytest.raises(xcc.UserError, match="n = 4 and m = 3 must be equal"):
        model(np.ones(4, np.float32), np.ones(3, np.float32))
