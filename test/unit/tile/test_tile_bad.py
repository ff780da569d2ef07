"""Bad tile programs: each is a UserError that says where it is, and what is wrong."""

import re

import numpy as np
import pytest
from one_op_programs import LINES, MATRIX, PLACES, READ, program

from xcc import tile
from xcc.diagnostics import UserError

T = "vector<4x16xf32>"
M = "memref<?x?xf32>"
BAD = {
    "no such op": ('  %r = "tile.lod"(%t) : (T) -> T\n', "'tile.lod' is no op of the dialect"),
    "other dialects": ('  %r = vector.transpose %t, [1, 0] : T to vector<16x4xf32>\n',
                       "'vector.transpose' is no part of a tile program"),
    "operands": ('  %r = "tile.load"(%x) {shape = [4, 16]} : (M) -> T\n', "takes the operands buffer, other"),
    "offsets": ('  %r = "tile.load"(%x, %zero, %c0) {shape = [4, 16]} : (M, f32, index) -> T\n',
                "1 offsets for a buffer of f32[?, ?]"),
    "offset type": ('  %r = "tile.load"(%x, %zero, %c0, %zero) {shape = [4, 16]} : (M, f32, index, f32) -> T\n',
                    "an offset is f32, not an index"),
    "no shape": ('  %r = "tile.load"(%x, %zero, %c0, %c0) : (M, f32, index, index) -> T\n',
                 "needs the attribute shape"),
    "shape kind": ('  %r = "tile.load"(%x, %zero, %c0, %c0) {shape = 4 : i64} : (M, f32, index, index) -> T\n',
                   "shape = 4 : i64 is no ints"),
    "power of two": ('  %r = "tile.load"(%x, %zero, %c0, %c0) {shape = [3, 16]} : (M, f32, index, index) '
                     '-> vector<3x16xf32>\n', "a size of 3 is no power of two"),
    "too large": ('  %r = "tile.load"(%x, %zero, %c0, %c0) {shape = [2048, 1024]} : (M, f32, index, index) '
                  '-> vector<2048x1024xf32>\n', "more than the 1048576"),
    "result": ('  %r = "tile.load"(%x, %zero, %c0, %c0) {shape = [4, 16]} : (M, f32, index, index) '
               '-> vector<4x8xf32>\n', "gives f32[4, 8], but f32[4, 16] follows"),
    "other's type": ('  %n = arith.constant 0 : i32\n  %r = "tile.load"(%x, %n, %c0, %c0) {shape = [4, 16]} : '
                     '(M, i32, index, index) -> T\n', "other is i32, the buffer's elements are f32"),
    "stored type": ('  %h = arith.truncf %t : T to vector<4x16xf16>\n  "tile.store"(%h, %y, %c0, %c0) : '
                    '(vector<4x16xf16>, '
                    'M, index, index) -> ()\n', "the value is f16[4, 16], the buffer's elements are f32"),
    "stored rank": ('  "tile.store"(%zero, %y, %c0, %c0) : (f32, M, index, index) -> ()\n',
                    "give it a size for each dim"),
    "no buffer": ('  "tile.store"(%t, %t, %c0, %c0) : (T, T, index, index) -> ()\n', "the buffer is f32[4, 16]"),
    "shapes of a product": ('  %r = "tile.contract"(%t, %t, %t) : (T, T, T) -> T\n', "[..., m, k], [..., k, n]"),
    "kind": ('  %r = "tile.reduce"(%t) {axes = [1], kind = "mean"} : (T) -> vector<4xf32>\n', "kind = 'mean' is "
                                                                                              "none of"),
    "kind of floats": ('  %r = "tile.reduce"(%t) {axes = [1], kind = "xor"} : (T) -> vector<4xf32>\n',
                       "kind xor does not take f32"),
    "axis": ('  %r = "tile.reduce"(%t) {axes = [2], kind = "sum"} : (T) -> vector<4xf32>\n', "axis 2 is out of range"),
    "no axes": ('  %r = "tile.reduce"(%t) {axes = [], kind = "sum"} : (T) -> T\n', "no axis to reduce along"),
    "scan": ('  %r = "tile.scan"(%zero) {axis = 0 : i64, kind = "sum"} : (f32) -> f32\n', "axis 0 is out of range for"),
    "region": ('  %r = "tile.reduce_by"(%t) ({\n  ^bb0(%a: f32):\n    "tile.yield"(%a) : (f32) -> ()\n  }) {axis '
               '= 0 : i64} : '
               '(T) -> vector<16xf32>\n', "a region of (f32), not of (f32, f32)"),
    "yield": ('  %r = "tile.reduce_by"(%t) ({\n  ^bb0(%a: f32, %b: f32):\n    "tile.yield"() : () -> ()\n  }) '
              '{axis = 0 : i64}'
              ' : (T) -> vector<16xf32>\n', "does not end with a tile.yield of (f32)"),
    "no region": ('  %r = "tile.reduce_by"(%t) {axis = 0 : i64} : (T) -> vector<16xf32>\n', "has the regions combine"),
    "sort floats": ('  %r = "tile.sort"(%t) : (T) -> T\n', "integers [rows, n] are needed"),
    "reshape": ('  %r = "tile.reshape"(%t) {shape = [4, 8]} : (T) -> vector<4x8xf32>\n', "has 64 elements, the "
                                                                                         "shape [4, 8]"),
    "broadcast": ('  %r = "tile.broadcast"(%t) {shape = [8, 16]} : (T) -> vector<8x16xf32>\n', "does not stretch "
                                                                                               "to [8, 16]"),
    "transpose": ('  %r = "tile.transpose"(%t) {order = [0, 0]} : (T) -> T\n', "order [0, 0] is no order"),
    "split": ('  %a, %b = "tile.split"(%t) : (T) -> (T, T)\n', "the last dim must be 2"),
    "join": ('  %r = "tile.join"(%t, %zero) : (T, f32) -> T\n', "two alike are needed"),
    "assert": ('  "tile.assert"(%t) : (T) -> ()\n', "the condition is f32[4, 16], no i1"),
    "grid axis": ('  %r = "tile.program_id"() {axis = 3 : i64} : () -> index\n', "axis 3: a grid has three"),
    "arith": ("  %r = arith.addf %t, %zero : T\n", "expects different type"),
    "sizes": ("  %r = arith.constant dense<0.0> : vector<6xf32>\n  %s = math.exp %r : vector<6xf32>\n",
              "a size of 6 is no power of two"),
    "iota": ('  %r = "tile.iota"() {dtype = f32, size = 4 : i64} : () -> vector<4xf32>\n', "positions are no f32"),
}


@pytest.mark.parametrize("name", BAD)
def test_is_told_with_its_place(name):
    line, message = BAD[name]
    with pytest.raises(UserError) as e:
        tile.parse(program(READ + re.sub(r"\b[TM]\b", lambda m: {"T": T, "M": M}[m[0]], line)))
    assert message in str(e.value)
    assert re.match(r"<text>: ?\d+:\d+: ", str(e.value))


POSITIONS = {
    "mask": ('  "tile.scatter"(%t, %y, %t, %at) : (vector<32xf32>, memref<?xf32>, vector<32xf32>, vector<32xi32>) '
             '-> ()\n',
             "the mask is f32[32], not i1"),
    "positions": ('  "tile.scatter"(%t, %y, %m, %t) : (vector<32xf32>, memref<?xf32>, vector<32xi1>, '
                  'vector<32xf32>) -> ()\n',
                  "a position is f32[32], not integers"),
    "expected": ('  %o = "tile.compare_swap"(%t, %y, %m, %at, %at) : (vector<32xf32>, memref<?xf32>, vector<32xi1>, '
                 'vector<32xi32>, vector<32xi32>) -> vector<32xf32>\n', "expected is i32[32], the value f32[32]"),
    "swapped floats": ('  %o = "tile.compare_swap"(%t, %y, %m, %t, %at) : (vector<32xf32>, memref<?xf32>, '
                       'vector<32xi1>, vector<32xf32>, vector<32xi32>) -> vector<32xf32>\n',
                       "there is no compare and swap of f32"),
    "atomic kind": ('  %o = "tile.atomic"(%t, %y, %m, %at) {kind = "or"} : (vector<32xf32>, memref<?xf32>, '
                    'vector<32xi1>, '
                    'vector<32xi32>) -> vector<32xf32>\n', "kind or does not take f32"),
}


@pytest.mark.parametrize("name", POSITIONS)
def test_positions_are_looked_at(name):
    line, message = POSITIONS[name]
    with pytest.raises(UserError, match=r"^<text>:\d+:\d+: ") as e:
        tile.parse(program(PLACES + line, LINES))
    assert message in str(e.value)


@pytest.mark.parametrize("arguments, grid, message", [
    (MATRIX, "[1, 1, 1, 1]", "one to three are needed"), (MATRIX, "[]", "one to three are needed"),
    (MATRIX, "7 : i64", "one to three sizes"),
    ("%x: tensor<4xf32>", "[1]", "programs take memrefs"), ("%x: memref<?xui8>", "[1]", "its elements can be"),
    ('%x: memref<?xf32> {tile.name = "x"}, %y: f32 {tile.name = "x"}', "[1]", "two arguments are named 'x'"),
    ('%x: memref<?xf32> {tile.dims = ["a", "b"]}', "[1]", "are not its sizes"),
    ("%x: memref<?xf32, strided<[1], offset: 4>>", "[1]", "without an offset"),
])
def test_arguments_are_looked_at(arguments, grid, message):
    with pytest.raises(UserError, match=message):
        tile.parse(program("", arguments, grid))


@pytest.mark.parametrize("arrays, grid, message", [
    ([np.zeros((4, 4), np.float32)], (), "p takes x, y; 1 arguments"),
    ([np.zeros(4, np.float32), np.zeros((4, 4), np.float32)], (), r"x is buffer of f32\[\?, \?\], f32\[4\] was given"),
    ([np.zeros((4, 4), np.float64), np.zeros((4, 4), np.float32)], (), r"f64\[4, 4\] was given"),
    ([np.zeros((4, 8), np.float32)[:, ::2], np.zeros((4, 4), np.float32)], (), "x has strides"),
    ([np.zeros((4, 4), np.float32)] * 2, (3,), "the grid needs nothing; 1 numbers"),
])
def test_what_is_given_is_looked_at(arrays, grid, message):
    with pytest.raises(UserError, match=message):
        tile.evaluate(program(READ), arrays, grid)


def test_a_builder_tells_the_line_of_its_caller():
    matrix = tile.BufferOf("f32", (None, None))
    for body, message in [
        (lambda x: tile.load(x, (0, 0), (3, 4)), "a size of 3 is no power of two"),
        (lambda x: x.tile((0, 0), (4, 4)) + x.tile((0, 0), (8, 8)), "shapes [4, 4] and [8, 8] do not fit"),
        (lambda x: bool(x.tile((0, 0), (4, 4)).sum() > 0), "known in a run only"),
        (lambda x: tile.exp(tile.arange(4)), "exp of <i32[4]>: floats are needed"),
        (lambda x: x.store((0, 0), x), "a buffer is no value"),
        (lambda x: tile.for_(0, 4, 1, [tile.zeros((4,))], lambda i, s: tile.zeros((8,))), "must keep dtype and shape"),
        (lambda x: tile.if_(tile.arange(4) > 1, lambda: None), "not a scalar i1"),
    ]:
        with pytest.raises(UserError) as e:
            tile.build("p", {"x": matrix}, body)
        assert message in str(e.value)
        assert str(e.value).startswith(f"{__file__}:{body.__code__.co_firstlineno}:")
