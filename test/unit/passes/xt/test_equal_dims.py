"""Dims that a model takes to be equal are checked when it runs."""

import numpy as np
import pytest
from kernel_cases import module_of

import xcc
from xcc.dialects import xt
from xcc.passes.xt.sizes.equal_dims import equal_dims, note_equal_dims
from xcc.runtime.program import Buffer, Program, to_json
from xcc.runtime.program_reader import program_from_json
from xcc.runtime.signature import solve_symbols
from xcc.symbolic import dim_max, dim_min, sym

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


MAIN = """
func.func @main(%c: tensor<i1> {{xt.name = "c"}}, %t: tensor<i64> {{xt.name = "t"}},
                %a: tensor<?xf32, ["n"]> {{xt.name = "a"}},
                %b: tensor<?xf32, ["m"]> {{xt.name = "b"}}) -> (tensor<?xf32, ["n"]> {{xt.name = "y"}}) {{
  {0}
  return %0 : tensor<?xf32, ["n"]>
}}"""
BRANCH = MAIN.format("""%0 = "xtv.if"(%c) ({
    %1 = "xt.neg"(%b) : (tensor<?xf32, ["m"]>) -> tensor<?xf32, ["m"]>
    %2 = "xt.add"(%a, %1) : (tensor<?xf32, ["n"]>, tensor<?xf32, ["m"]>) -> tensor<?xf32, ["n"]> loc("sum")
    "xtv.yield"(%2) : (tensor<?xf32, ["n"]>) -> ()
  }, {
    "xtv.yield"(%a) : (tensor<?xf32, ["n"]>) -> ()
  }) : (tensor<i1>) -> tensor<?xf32, ["n"]>""")
YIELD = MAIN.format("""%0 = "xtv.if"(%c) ({
    "xtv.yield"(%a) : (tensor<?xf32, ["n"]>) -> ()
  }, {
    "xtv.yield"(%b) : (tensor<?xf32, ["m"]>) -> ()
  }) : (tensor<i1>) -> tensor<?xf32, ["n"]>""")
LOOP = MAIN.format("""%zero = "xt.constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  %one = "xt.constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %i, %0 = "xtv.while"(%zero, %a) ({
  ^bb0(%i0: tensor<i64>, %v0: tensor<?xf32, ["n"]>):
    %go = "xt.compare"(%i0, %t) {direction = "lt"} : (tensor<i64>, tensor<i64>) -> tensor<i1>
    "xtv.yield"(%go) : (tensor<i1>) -> ()
  }, {
  ^bb0(%i1: tensor<i64>, %v1: tensor<?xf32, ["n"]>):
    %next = "xt.add"(%i1, %one) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    "xtv.yield"(%next, %b) : (tensor<i64>, tensor<?xf32, ["m"]>) -> ()
  }) : (tensor<i64>, tensor<?xf32, ["n"]>) -> (tensor<i64>, tensor<?xf32, ["n"]>)""")
SCAN = MAIN.format("""%0 = "xtv.scan"(%a, %b) ({
  ^bb0(%s: tensor<?xf32, ["n"]>, %x: tensor<f32>):
    %s2 = "xt.add"(%s, %b) : (tensor<?xf32, ["n"]>, tensor<?xf32, ["m"]>) -> tensor<?xf32, ["n"]>
    "xtv.yield"(%s2) : (tensor<?xf32, ["n"]>) -> ()
  }) {length = ["m"], axes = [0], reverse = [0], out_axes = [], out_reverse = [],
      operandSegmentSizes = array<i32: 1, 1>}
   : (tensor<?xf32, ["n"]>, tensor<?xf32, ["m"]>) -> tensor<?xf32, ["n"]>""")
COUNTED = MAIN.format("""%zero = "xt.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %big = "xt.compare"(%b, %zero) {direction = "gt"} : (tensor<?xf32, ["m"]>, tensor<f32>) -> tensor<?xi1, ["m"]>
  %kept = "xt.compress"(%b, %big) {symbol = "k", axis = 0 : i64, flat = false}
    : (tensor<?xf32, ["m"]>, tensor<?xi1, ["m"]>) -> tensor<?xf32, ["k"]>
  %0 = "xt.add"(%a, %kept) : (tensor<?xf32, ["n"]>, tensor<?xf32, ["k"]>) -> tensor<?xf32, ["n"]>""")


def parsed(text):
    from xcc.context import new_context, parse_module

    module = parse_module(text, new_context())
    note_equal_dims(module)
    return module


@pytest.mark.parametrize("text", [BRANCH, YIELD, LOOP, SCAN, COUNTED])
def test_what_runs_only_sometimes_is_required_there(text):
    """Not a condition of every run: it is compared where the op stands that relies on it."""
    module = parsed(text)
    assert "xt.equal" not in module.operation.attributes
    assert str(module).count("xtv.require") == 1


def test_requirements_stand_at_the_start_of_a_branch():
    branch = str(parsed(BRANCH)).split('"xtv.if"')[1]
    assert branch.index("xtv.require") < branch.index("xt.neg")
    assert "node 'sum'" in branch


@pytest.mark.parametrize(("text", "fits", "fails"), [
    (BRANCH, ((False, 0), [5, 6]), (True, 0)), (YIELD, ((True, 0), [5, 6]), (False, 0)),
    (LOOP, ((True, 0), [5, 6]), (True, 1)), (SCAN, None, (True, 0)), (COUNTED, None, (True, 0))],
    ids=["branch", "yield", "loop", "scan", "counted"])
def test_a_run_that_comes_there_is_refused(text, fits, fails, tmp_path):
    """a has two elements and b three; after the error the model runs as before."""
    path = tmp_path / "m.mlir"
    path.write_text(text)
    model = xcc.compile(path)
    a, two, three = (np.array(v, np.float32) for v in ([5, 6], [1, 2], [1, 2, 3]))

    def run(b, c, t):
        return model.run({"a": a, "b": b, "c": np.array(c), "t": np.array(t)})["y"]

    before = run(two, True, 3).tolist()
    if fits is not None:
        assert run(three, *fits[0]).tolist() == fits[1]
    with pytest.raises(xcc.UserError, match="(node|an ).*: sizes do not fit: . = . and . = . must be equal, as"):
        run(three, *fails)
    assert run(two, True, 3).tolist() == before


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


def test_sizes_are_not_negative():
    """A window that is larger than its input is an error of the run, in a branch only of a run that takes it."""
    def cut(x):
        return xt.slice(x, starts=(2,), limits=(N - 1,))

    assert noted(lambda a, b: cut(a), f32(N), f32(M)) == ((N - 3, dim_max(N - 3, 0)),)
    module = module_of(lambda a, b: xt.pad(a, low=(2,), high=(-2,)), f32(N), f32(M))
    note_equal_dims(module)
    assert "xt.equal" not in module.operation.attributes            # n + 2 - 2
    p = program((N - 3, dim_max(N - 3, 0)))
    assert solve_symbols(p, [(3,), (1,)]) == {"n": 3, "m": 1}
    with pytest.raises(xcc.UserError, match=r"too small: n - 3 = -1 would be a size, as 'n' is 2 \(from dim 0 of"):
        solve_symbols(p, [(2,), (1,)])


def test_what_is_read_is_there():
    """A slice or an element of an input that is smaller is an error of the run."""
    def sliced(*limits):
        return noted(lambda a, b: xt.slice(a, starts=(0,), limits=limits), f32(N), f32(M))

    def gathered(indices):
        return noted(lambda a, b: xt.gather(a, indices(), axis=0), f32(N, 2), f32(M))

    assert sliced(1) == ((N, dim_max(N, 1)),)
    assert sliced(N) == sliced(dim_min(N, 4)) == ()
    assert noted(lambda a, b: xt.slice(a, starts=(N - 1,), limits=(N,)), f32(N), f32(M)) == (
        (N - 1, dim_max(N - 1, 0)),)
    assert gathered(lambda: xt.scalar(0, "i64")) == ((N, dim_max(N, 1)),)
    assert gathered(lambda: xt.iota(shape=(0,), axis=0, dtype="i64")) == ()
    p = program((N, dim_max(N, 2)))
    assert solve_symbols(p, [(2,), (1,)]) == {"n": 2, "m": 1}
    with pytest.raises(xcc.UserError, match=r"too small: 2 of n = 1 are read or written, as 'n' is 1 \(from dim 0 of"):
        solve_symbols(p, [(1,), (1,)])


def indices(*shape):
    return xt.TensorType(shape, "i64")


def test_places_are_there():
    """Indices that reach further than what they index is large are an error of the run, not a write behind it."""
    def pairs(build, *types):
        return set(noted(build, *types))

    some = dim_max(N, dim_min(1, 4 * M))
    assert pairs(lambda x, i: xt.gather_elements(x, i, axis=1), f32(N, 4), indices(M, 4)) == {(N, dim_max(N, M))}
    assert pairs(lambda x, i: xt.gather_elements(x, i, axis=0), f32(N, 4), indices(M, 4)) == {(N, some)}
    assert pairs(lambda x, i, u: xt.scatter_elements(x, i, u, axis=1), f32(N, 4), indices(M, 4), f32(M, 4)) == {
        (N, dim_max(N, M))}
    one = dim_max(N, dim_min(1, M))
    assert pairs(lambda x, i: xt.gather_nd(x, i), f32(N, 4), indices(M, 1)) == {(N, some)}
    assert pairs(lambda x, i, u: xt.scatter_nd(x, i, u), f32(N, 4), indices(M, 1), f32(M, 4)) == {(N, one)}
    assert pairs(lambda x, i: xt.gather(x, i, axis=1, batch_dims=1), f32(N, 4), indices(M, 2)) == {(N, M)}
    assert pairs(lambda x, i: xt.gather_nd(x, i, batch_dims=1), f32(N, 4), indices(M, 1)) == {(N, M)}
    assert pairs(lambda x, s: xt.dynamic_slice(x, s, sizes=(3,)), f32(N), indices()) == {(N, dim_max(N, 3))}
    assert pairs(lambda x: xt.top_k(x, k=2, axis=0), f32(N, 4)) == {(N, dim_max(N, 2))}
    assert pairs(lambda x: xt.top_k(x, k=dim_min(N, 2), axis=0), f32(N, 4)) == set()
    assert pairs(lambda x: xt.arg_reduce(x, kind="argmax", axis=0), f32(N, M)) == {(N, dim_max(N, dim_min(1, M)))}
    assert pairs(lambda x: xt.pad(x, low=(0, 1), high=(1, 0), mode="edge"), f32(N, 4)) == {(N, dim_max(N, 1))}
    assert pairs(lambda x: xt.pad(x, low=(1, 0), high=(1, 0)), f32(N, 4)) == set()
    assert pairs(lambda x: xt.resize(x, shape=(N, 4)), f32(N, M)) == {(M, dim_max(M, dim_min(1, 4 * N)))}
    assert pairs(lambda x, g: xt.grid_sample(x, g), f32(1, 3, N, 4), f32(1, 2, 2, 2)) == {(N, dim_max(N, 1))}
    chosen = xt.TensorType((M,), "i1")
    assert pairs(lambda x, c: xt.compress(x, c, axis=0, symbol="k"), f32(N, 4), chosen) == {(N, dim_max(N, M))}
    assert pairs(lambda x, c: xt.compress(x, c, flat=True, symbol="k"), f32(N), chosen.with_shape((N,))) == set()
    with pytest.raises(xcc.UserError, match="too small: 5 of n = 2 are read or written, as 'n' is 2"):
        solve_symbols(program((N, dim_max(N, M))), [(2,), (5,)])


@pytest.mark.parametrize(("build", "types"), [
    (lambda x, i: xt.gather_elements(x, i, axis=1), (f32(2, 4), indices(5, 4))),
    (lambda x, i, u: xt.scatter_elements(x, i, u, axis=1), (f32(2, 4), indices(5, 4), f32(5, 4))),
    (lambda x, i: xt.gather(x, i, axis=1, batch_dims=1), (f32(2, 4), indices(3, 2))),
    (lambda x, s: xt.dynamic_slice(x, s, sizes=(3,)), (f32(2), indices())),
    (lambda x, c: xt.compress(x, c, axis=0, symbol="k"), (f32(2, 3), xt.TensorType((3,), "i1")))])
def test_places_that_are_never_there(build, types):
    with pytest.raises(xcc.UserError, match="larger than|longer|differ"):
        module_of(build, *types)


SAMPLING = {
    "argmax": lambda x: xt.arg_reduce(x, kind="argmax", axis=2),
    "gather": lambda x: xt.gather(x, xt.scalar(0, "i64"), axis=2),
    "edge": lambda x: xt.pad(x, low=(0, 0, 1, 0), high=(0, 0, 0, 0), mode="edge"),
    "wrap": lambda x: xt.pad(x, low=(0, 0, 0, 0), high=(0, 0, 2, 0), mode="wrap"),
    "resize": lambda x: xt.resize(x, shape=(1, 2, 4, 4)),
    "grid": lambda x: xt.grid_sample(x, xt.constant(np.zeros((1, 2, 2, 2), np.float32)))}


@pytest.mark.parametrize("build", SAMPLING.values(), ids=SAMPLING)
def test_nothing_is_read_of_an_empty_dim(build):
    """An error of the compilation; of the run, where the size is known then."""
    with pytest.raises(xcc.UserError, match="dim 2 is empty"):
        module_of(build, f32(1, 2, 0, 4))
    assert noted(build, f32(1, 2, N, 4)) == ((N, dim_max(N, 1)),)
