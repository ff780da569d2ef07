"""Host programs as native code, and the executor that calls them."""

import json

import cpu_kernels
import numpy as np
import pytest

import xcc
from xcc import symbolic
from xcc._mlir import ir
from xcc.runtime.cpu import make_executor
from xcc.runtime.program import BindSymbol, Buffer, Copy, For, If, Launch, Program, Require, SetScalar, While
from xcc.symbolic import parse, sym
from xcc.targets.base import KernelBinary
from xcc.targets.cpu import chip as cpu_chip
from xcc.targets.cpu import codegen
from xcc.targets.cpu.emit import stack_bytes
from xcc.targets.cpu.host import host_program
from xcc.targets.cpu.target import TARGET

N = sym("n")

ADD = """
func.func @add(%a: memref<?xf32>, %b: memref<?xf32>, %out: memref<?xf32>, %d0: index)
    attributes {xt.kernel, xt.symbols = ["d0"]} {
  %c16 = arith.constant 16 : index
  %pad = arith.constant 0.0 : f32
  %n = arith.ceildivsi %d0, %c16 : index
  scf.forall (%i) in (%n) {
    %r = arith.muli %i, %c16 : index
    %left = arith.subi %d0, %r : index
    %m = vector.create_mask %left : vector<16xi1>
    %x = vector.transfer_read %a[%r], %pad, %m {in_bounds = [true]} : memref<?xf32>, vector<16xf32>
    %y = vector.transfer_read %b[%r], %pad, %m {in_bounds = [true]} : memref<?xf32>, vector<16xf32>
    %z = arith.addf %x, %y : vector<16xf32>
    vector.transfer_write %z, %out[%r], %m {in_bounds = [true]} : vector<16xf32>, memref<?xf32>
  } {xcc.parallel}
  return
}
func.func @less(%a: memref<1xf32>, %b: memref<1xf32>, %out: memref<1xi8>) attributes {xt.kernel} {
  %c0 = arith.constant 0 : index
  %x = memref.load %a[%c0] : memref<1xf32>
  %y = memref.load %b[%c0] : memref<1xf32>
  %z = arith.cmpf olt, %x, %y : f32
  %w = arith.extui %z : i1 to i8
  memref.store %w, %out[%c0] : memref<1xi8>
  return
}
"""


def executor(program, weights=None, threads=2):
    chip = cpu_chip.host()
    kernel = KernelBinary("k", "obj", codegen.emit_object(cpu_kernels.llvm_text(ADD), chip), ())
    members = TARGET.link(program, (kernel,), chip, None)
    return make_executor(program, members, weights or {}, {})


@pytest.mark.parametrize("n", [1, 5, 100, 5])
def test_launches_aliases_and_weights(n):
    """out = (x[2n:3n] + w) + x[0:n], through a temporary and two aliases."""
    program = Program(
        buffers=(Buffer("input", (3, N), "f32", "x"), Buffer("weight", (N,), "f32", "w"),
                 Buffer("alias", (N,), "f32", base=0, offset=8 * N), Buffer("temp", (N,), "f32"),
                 Buffer("alias", (N,), "f32", base=0), Buffer("output", (N,), "f32", "out")),
        body=(Launch("add", (2, 1, 3), (N,)), Launch("add", (3, 4, 5), (N,))),
        inputs=(0,), outputs=(5,), symbols=("n",))
    rng = np.random.default_rng(n)
    x, w = rng.random((3, n), np.float32), rng.random(n, np.float32)
    (out,) = executor(program, {"w": w}).run([x], {"n": n})
    np.testing.assert_array_equal(out, (x[2] + w) + x[0])


@pytest.mark.parametrize("native", [True, False])
def test_one_executor_many_shapes(native):
    """Planned by the library, and as for one that cannot plan."""
    program = Program(
        buffers=(Buffer("input", (N,), "f32", "x"), Buffer("temp", (N,), "f32"), Buffer("output", (N,), "f32", "out")),
        body=(Launch("add", (0, 0, 1), (N,)), Launch("add", (1, 0, 2), (N,))),
        inputs=(0,), outputs=(2,), symbols=("n",))
    run = executor(program)
    assert run.memory.native is not None
    if not native:
        run.memory.native = None
    for n in (3, 100000, 17, 3, 100000, 0):
        x = np.arange(n, dtype=np.float32)
        (out,) = run.run([x], {"n": n})
        np.testing.assert_array_equal(out, 3 * x)


def test_sizes_beyond_64_bits_are_no_small_ones():
    """The symbols' array would hold the low bits of an element of ui64."""
    program = Program(
        buffers=(Buffer("input", (3,), "f32", "x"), Buffer("temp", (N,), "f32"), Buffer("output", (3,), "f32", "out")),
        body=(Launch("add", (0, 0, 1), (3,)), Copy(0, 2)), inputs=(0,), outputs=(2,), symbols=("n",))
    run, x = executor(program), np.zeros(3, np.float32)
    run.run([x], {"n": 5})
    with pytest.raises(MemoryError):
        run.run([x], {"n": (1 << 64) + 5})


@pytest.mark.parametrize("flag", [True, False])
def test_if(flag):
    program = Program(
        buffers=(Buffer("input", (), "i1", "c"), Buffer("input", (3,), "f32", "x"), Buffer("output", (3,), "f32", "y")),
        body=(If(0, (Launch("add", (1, 1, 2), (3,)),), (Copy(1, 2),)),), inputs=(0, 1), outputs=(2,))
    x = np.array([1, 2, 3], np.float32)
    (out,) = executor(program).run([np.array(flag), x], {})
    np.testing.assert_array_equal(out, 2 * x if flag else x)


def test_while():
    """Doubles x until it is not below the limit."""
    program = Program(
        buffers=(Buffer("input", (1,), "f32", "x"), Buffer("input", (1,), "f32", "limit"),
                 Buffer("output", (1,), "f32", "y"), Buffer("temp", (1,), "f32"), Buffer("temp", (1,), "i1")),
        body=(Copy(0, 2), While((Launch("less", (2, 1, 4), ()),), 4,
                                (Launch("add", (2, 2, 3), (1,)), Copy(3, 2)))),
        inputs=(0, 1), outputs=(2,))
    (out,) = executor(program).run([np.array([3], np.float32), np.array([50], np.float32)], {})
    assert out.tolist() == [96]


def test_for_with_slices():
    """y[i] = x[i] + x[i] for each row, through aliases whose offset uses the counter."""
    i = sym("i")
    program = Program(
        buffers=(Buffer("input", (N, 5), "f32", "x"), Buffer("output", (N, 5), "f32", "y"),
                 Buffer("alias", (5,), "f32", base=0, offset=20 * i),
                 Buffer("alias", (5,), "f32", base=1, offset=20 * i)),
        body=(For("i", N, (Launch("add", (2, 2, 3), (5,)),)),), inputs=(0,), outputs=(1,), symbols=("n",))
    x = np.random.default_rng(0).random((7, 5), np.float32)
    (out,) = executor(program).run([x], {"n": 7})
    np.testing.assert_array_equal(out, x + x)


def test_bound_symbols_cut_the_output():
    """The output has as many elements as the second input says."""
    count = sym("count")
    program = Program(
        buffers=(Buffer("input", (N,), "f32", "x"), Buffer("input", (2,), "i32", "counts"),
                 Buffer("output", (count,), "f32", "y"), Buffer("output", (3,), "i64", "shape")),
        body=(BindSymbol("count", 1, 1, limit=N), Launch("add", (0, 0, 2), (count,)),
              SetScalar(3, (count, N, symbolic.floordiv(N * 3 + 1, 2)))),
        inputs=(0, 1), outputs=(2, 3), symbols=("n",))
    x = np.arange(9, dtype=np.float32)
    y, shape = executor(program).run([x, np.array([0, 4], np.int32)], {"n": 9})
    np.testing.assert_array_equal(y, 2 * x[:4])
    assert shape.tolist() == [4, 9, 14]


def test_a_size_is_computed_once_between_launches():
    """Else the function grows with the uses of a size and its length: LLVM took minutes for those of nested windows."""
    half = symbolic.floordiv(N + 1, 2)
    program = Program(buffers=(Buffer("input", (N,), "f32", "x"), Buffer("output", (half,), "f32", "y")),
                      body=(Launch("add", (0, 0, 1), (half,)),) * 20, inputs=(0,), outputs=(1,), symbols=("n",))
    main = host_program(program).partition("@xcc_main")[2].partition("@xcc_plan")[0]
    assert main.count("sdiv") == 1 and main.count("call void @add") == 20


def test_a_symbol_that_is_bound_again_has_its_new_value():
    m, i = sym("m"), sym("i")
    sizes = (BindSymbol("m", 0, 0, limit=9), SetScalar(1, (m * 2,)), BindSymbol("m", 0, 1, limit=9),
             SetScalar(2, (m * 2,)), For("i", m, (SetScalar(3, (i * m,)),)), SetScalar(4, (m * 2,)))
    program = Program(buffers=(Buffer("input", (2,), "i64", "x"), *(Buffer("output", (1,), "i64", n) for n in "abcd")),
                      body=sizes, inputs=(0,), outputs=(1, 2, 3, 4))
    assert [int(v[0]) for v in executor(program).run([np.array([3, 5])], {})] == [6, 10, 20, 10]


@pytest.mark.parametrize("dtype", ["f32", "f64", "i1", "i8", "i64", "f16"])
def test_set_scalar_types(dtype):
    program = Program(buffers=(Buffer("input", (N,), "f32", "x"), Buffer("output", (2,), dtype, "y")),
                      body=(SetScalar(1, (N, parse("max(n, 3)"))),), inputs=(0,), outputs=(1,), symbols=("n",))
    (out,) = executor(program).run([np.zeros(2, np.float32)], {"n": 2})
    assert out.tolist() == ([True, True] if dtype == "i1" else [2, 3])


def test_outputs_that_are_no_buffers_of_their_own():
    program = Program(
        buffers=(Buffer("input", (2, N), "f32", "x"), Buffer("alias", (N,), "f32", base=0, offset=4 * N)),
        body=(), inputs=(0,), outputs=(1, 0), symbols=("n",))
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    row, whole = executor(program).run([x], {"n": 3})
    np.testing.assert_array_equal(row, x[1])
    np.testing.assert_array_equal(whole, x)


def test_requirements_end_a_run():
    """Nothing behind one that does not hold runs, in loops and behind them either; the first counts."""
    def write(value):
        return SetScalar(2, (value,))

    program = Program(
        buffers=(Buffer("input", (N,), "f32", "x"), Buffer("input", (sym("m"),), "f32", "z"),
                 Buffer("output", (), "i64", "out"), Buffer("temp", (), "i1")),
        body=(write(1), SetScalar(3, (1,)),
              For("i", N, (write(10 + sym("i")), Require(sym("i"), 0, "turn"), write(20 + sym("i")))),
              While((SetScalar(3, (1,)),), 3, (Require(N, 1, "first"), Require(N, 2, "second"), write(3))),
              write(4)),
        inputs=(0, 1), outputs=(2,), symbols=("n", "m"))
    run = executor(program)
    for n, message in ((3, "turn: sizes do not fit: i = 1 and 0 must be equal, as 'i' is 1"), (1, "second: "),
                       (0, "first: sizes do not fit: n = 0 and 1 must be equal, as 'n' is 0")):
        with pytest.raises(xcc.UserError, match=message):
            run.run([np.zeros(n, np.float32), np.zeros(1, np.float32)], {"n": n, "m": 1})


def test_a_number_that_is_required_to_be_another_is_the_whole_message():
    flag = Buffer("input", (), "i1", "flag")
    program = Program((flag, Buffer("output", (), "i64", "out")),
                      (If(0, (Require(0, 1, "this branch cannot run"),), ()), SetScalar(1, (7,))), (0,), (1,))
    run = executor(program)
    assert run.run([np.array(False)], {})[0] == 7
    with pytest.raises(xcc.UserError, match="^this branch cannot run$"):
        run.run([np.array(True)], {})
    assert run.run([np.array(False)], {})[0] == 7


def test_stack_of_a_kernel():
    """The buffers of all its functions together, and the most of any kernel in the artifact."""
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse("""
          llvm.func @k(%n: i64) {
            %a = llvm.mlir.constant(100 : i64) : i64
            %0 = llvm.alloca %a x f32 : (i64) -> !llvm.ptr
            %1 = llvm.alloca %n x f32 : (i64) -> !llvm.ptr
            llvm.return
          }
          llvm.func @k__p0() {
            %a = llvm.mlir.constant(3 : index) : i64
            %0 = llvm.alloca %a x vector<16xbf16> {alignment = 64 : i64} : (i64) -> !llvm.ptr
            llvm.return
          }""")
        assert stack_bytes(module) == 400 + 3 * 32
    x, y = Buffer("input", (1,), "f32", "x"), Buffer("output", (1,), "f32", "y")
    program = Program((x, y), (Copy(0, 1),), (0,), (1,))
    chip = cpu_chip.host()
    texts = (ADD, ADD.replace("@add", "@plus").replace("@less", "@below"))
    kernels = tuple(KernelBinary(str(n), "obj", codegen.emit_object(cpu_kernels.llvm_text(text), chip), (),
                                 report=(("stack", n),)) for text, n in zip(texts, (70, 30), strict=True))
    assert json.loads(TARGET.link(program, kernels, chip, None)["kernels/cpu.json"])["stack"] == 70
