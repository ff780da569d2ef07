"""A tile program written by hand for each op of the dialect, and the arrays that it runs on."""

import numpy as np

MATRIX = '%x: memref<?x?xf32> {tile.name = "x"}, %y: memref<?x?xf32> {tile.name = "y"}'
READ = """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %t = "tile.load"(%x, %zero, %c0, %c0) {shape = [4, 16]} : (memref<?x?xf32>, f32, index, index) -> vector<4x16xf32>
"""
WRITE = '  "tile.store"(%r, %y, %c0, %c0) : (vector<{0}xf32>, memref<?x?xf32>, index, index) -> ()\n'


def program(body: str, arguments: str = MATRIX, grid: str = "[1]") -> str:
    return f"func.func @p({arguments}) attributes {{tile.grid = {grid}}} {{\n{body}  return\n}}\n"


def of_a_tile(line: str, result: str = "4x16") -> str:
    """A program that reads x, computes %r of %t in a few lines, and stores it to y."""
    return program(READ + line + WRITE.format(result))


ELEMENTS = "vector<64xi32>, f32"
LINES = '%x: memref<?xf32> {tile.name = "x"}, %i: memref<?xi32> {tile.name = "i"}, %y: memref<?xf32> {tile.name = "y"}'
PLACES = """
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %none = arith.constant -1 : i32
  %half = arith.constant dense<20> : vector<32xi32>
  %at = "tile.load"(%i, %none, %c0) {shape = [32]} : (memref<?xi32>, i32, index) -> vector<32xi32>
  %m = arith.cmpi slt, %at, %half : vector<32xi32>
  %t = "tile.load"(%x, %zero, %c0) {shape = [32]} : (memref<?xf32>, f32, index) -> vector<32xf32>
"""
SHORT = "(vector<32xf32>, memref<?xf32>, index) -> ()"
ADD = """ ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    "tile.yield"(%s) : (f32) -> ()
  })"""

PROGRAMS: dict[str, str] = {
    "program_id": program("""
  %n = "tile.program_id"() {axis = 0 : i64} : () -> index
  %k = "tile.num_programs"() {axis = 1 : i64} : () -> index
  %c0 = arith.constant 0 : index
  %sum = arith.addi %n, %k : index
  %i = arith.index_cast %sum : index to i64
  %f = arith.sitofp %i : i64 to f32
  %r = "tile.broadcast"(%f) {shape = [1, 16]} : (f32) -> vector<1x16xf32>
  "tile.store"(%r, %y, %n, %c0) : (vector<1x16xf32>, memref<?x?xf32>, index, index) -> ()
""", grid='["x_0", 2]'),
    "load": program("""
  %c0 = arith.constant 0 : index
  %c2 = arith.constant -2 : index
  %other = arith.constant 7.0 : f32
  %r = "tile.load"(%x, %other, %c2, %c0) {shape = [8, 32]} : (memref<?x?xf32>, f32, index, index) -> vector<8x32xf32>
""" + WRITE.format("8x32")),
    "store": program(READ + """
  %c3 = arith.constant 3 : index
  %back = arith.constant -5 : index
  "tile.store"(%t, %y, %c3, %back) : (vector<4x16xf32>, memref<?x?xf32>, index, index) -> ()
"""),
    "view": program(READ + """
  %c5 = arith.constant 5 : index
  %v = "tile.view"(%x, %c1, %c1, %c1, %c5) {order = [1, 0]}
    : (memref<?x?xf32>, index, index, index, index) -> memref<?x?xf32, strided<[?, ?], offset: ?>>
  %r = "tile.load"(%v, %zero, %c0, %c0) {shape = [8, 4]}
    : (memref<?x?xf32, strided<[?, ?], offset: ?>>, f32, index, index) -> vector<8x4xf32>
""" + WRITE.format("8x4")),
    "gather": program(PLACES + """
  %r = "tile.gather"(%x, %zero, %m, %at)
    : (memref<?xf32>, f32, vector<32xi1>, vector<32xi32>) -> vector<32xf32>
  "tile.store"(%r, %y, %c0) : """ + SHORT + "\n", LINES),
    "scatter": program(PLACES + """
  "tile.scatter"(%t, %y, %m, %at) : (vector<32xf32>, memref<?xf32>, vector<32xi1>, vector<32xi32>) -> ()
""", LINES),
    "atomic": program(PLACES + """
  %three = arith.constant dense<3> : vector<32xi32>
  %few = arith.andi %at, %three : vector<32xi32>
  %old = "tile.atomic"(%t, %y, %m, %few) {kind = "max"}
    : (vector<32xf32>, memref<?xf32>, vector<32xi1>, vector<32xi32>) -> vector<32xf32>
""", LINES, "[3]"),
    "compare_swap": program(PLACES + """
  %three = arith.constant dense<3> : vector<32xi32>
  %few = arith.andi %at, %three : vector<32xi32>
  %n = "tile.iota"() {dtype = i32, size = 32 : i64} : () -> vector<32xi32>
  %old = "tile.compare_swap"(%half, %i, %m, %few, %n)
    : (vector<32xi32>, memref<?xi32>, vector<32xi1>, vector<32xi32>, vector<32xi32>) -> vector<32xi32>
  %f = arith.sitofp %old : vector<32xi32> to vector<32xf32>
  "tile.store"(%f, %y, %c0) : (vector<32xf32>, memref<?xf32>, index) -> ()
""", LINES, "[1]"),
    "contract": of_a_tile("""
  %u = "tile.transpose"(%t) {order = [1, 0]} : (vector<4x16xf32>) -> vector<16x4xf32>
  %a = arith.constant dense<1.0> : vector<16x16xf32>
  %r = "tile.contract"(%u, %t, %a) : (vector<16x4xf32>, vector<4x16xf32>, vector<16x16xf32>) -> vector<16x16xf32>
""", "16x16"),
    "reduce": of_a_tile("""
  %s = "tile.reduce"(%t) {axes = [1], kind = "max"} : (vector<4x16xf32>) -> vector<4xf32>
  %all = "tile.reduce"(%t) {axes = [0, 1], kind = "sum"} : (vector<4x16xf32>) -> f32
  %b = "tile.broadcast"(%all) {shape = [4]} : (f32) -> vector<4xf32>
  %both = arith.addf %s, %b : vector<4xf32>
  %r = "tile.reshape"(%both) {shape = [4, 1]} : (vector<4xf32>) -> vector<4x1xf32>
""", "4x1"),
    "reduce_by": of_a_tile('  %s = "tile.reduce_by"(%t)' + ADD + """ {axis = 0 : i64}
    : (vector<4x16xf32>) -> vector<16xf32>
  %r = "tile.reshape"(%s) {shape = [1, 16]} : (vector<16xf32>) -> vector<1x16xf32>
""", "1x16"),
    "scan": of_a_tile("""
  %a = "tile.scan"(%t) {axis = 1 : i64, kind = "sum"} : (vector<4x16xf32>) -> vector<4x16xf32>
  %r = "tile.scan"(%a) {axis = 0 : i64, exclusive = true, kind = "max", reverse = true}
    : (vector<4x16xf32>) -> vector<4x16xf32>
"""),
    "scan_by": of_a_tile('  %r = "tile.scan_by"(%t)' + ADD +
                         " {axis = 1 : i64, reverse = true} : (vector<4x16xf32>) -> vector<4x16xf32>\n"),
    "sort": of_a_tile("""
  %k = arith.fptosi %t : vector<4x16xf32> to vector<4x16xi32>
  %s = "tile.sort"(%k) {keep = 4 : i64} : (vector<4x16xi32>) -> vector<4x4xi32>
  %r = arith.sitofp %s : vector<4x4xi32> to vector<4x4xf32>
""", "4x4"),
    "iota": of_a_tile("""
  %i = "tile.iota"() {dtype = i32, size = 16 : i64} : () -> vector<16xi32>
  %f = arith.sitofp %i : vector<16xi32> to vector<16xf32>
  %b = "tile.broadcast"(%f) {shape = [4, 16]} : (vector<16xf32>) -> vector<4x16xf32>
  %r = arith.mulf %b, %t : vector<4x16xf32>
"""),
    "reshape": of_a_tile("""
  %u = "tile.reshape"(%t) {shape = [16, 4]} : (vector<4x16xf32>) -> vector<16x4xf32>
  %v = "tile.transpose"(%u) {order = [1, 0]} : (vector<16x4xf32>) -> vector<4x16xf32>
  %w = "tile.reshape"(%v) {shape = [2, 4, 8]} : (vector<4x16xf32>) -> vector<2x4x8xf32>
  %z = "tile.transpose"(%w) {order = [1, 0, 2]} : (vector<2x4x8xf32>) -> vector<4x2x8xf32>
  %r = "tile.reshape"(%z) {shape = [4, 16]} : (vector<4x2x8xf32>) -> vector<4x16xf32>
"""),
    "join": of_a_tile("""
  %u = "tile.reshape"(%t) {shape = [4, 8, 2]} : (vector<4x16xf32>) -> vector<4x8x2xf32>
  %a, %b = "tile.split"(%u) : (vector<4x8x2xf32>) -> (vector<4x8xf32>, vector<4x8xf32>)
  %j = "tile.join"(%b, %a) : (vector<4x8xf32>, vector<4x8xf32>) -> vector<4x8x2xf32>
  %r = "tile.reshape"(%j) {shape = [4, 16]} : (vector<4x8x2xf32>) -> vector<4x16xf32>
"""),
    "assert": of_a_tile("""
  %yes = arith.cmpf oeq, %t, %t : vector<4x16xf32>
  "tile.assert"(%yes) {message = "no NaN"} : (vector<4x16xi1>) -> ()
  %r = arith.negf %t : vector<4x16xf32>
"""),
    "loops": of_a_tile("""
  %c9 = arith.constant 9 : index
  %c4 = arith.constant 4 : index
  %half = arith.constant dense<0.5> : vector<4x16xf32>
  %s = scf.for %k = %c0 to %c9 step %c4 iter_args(%a = %t) -> (vector<4x16xf32>) {
    %b = arith.addf %a, %t : vector<4x16xf32>
    scf.yield %b : vector<4x16xf32>
  }
  %w:2 = scf.while (%a = %s, %n = %c0) : (vector<4x16xf32>, index) -> (vector<4x16xf32>, index) {
    %go = arith.cmpi slt, %n, %c4 : index
    scf.condition(%go) %a, %n : vector<4x16xf32>, index
  } do {
  ^bb0(%a: vector<4x16xf32>, %n: index):
    %b = arith.mulf %a, %half : vector<4x16xf32>
    %m = arith.addi %n, %c1 : index
    scf.yield %b, %m : vector<4x16xf32>, index
  }
  %rows = memref.dim %x, %c0 : memref<?x?xf32>
  %many = arith.cmpi sgt, %rows, %c4 : index
  %r = scf.if %many -> (vector<4x16xf32>) {
    scf.yield %w#0 : vector<4x16xf32>
  } else {
    %b = arith.negf %t : vector<4x16xf32>
    scf.yield %b : vector<4x16xf32>
  }
"""),
    "wide_products": program("""
  %c0 = arith.constant 0 : index
  %i = "tile.iota"() {dtype = i32, size = 32 : i64} : () -> vector<32xi32>
  %big = arith.constant dense<-766435501> : vector<32xi32>
  %low, %high = arith.mului_extended %i, %big : vector<32xi32>
  %both = arith.xori %low, %high : vector<32xi32>
  %three = arith.constant dense<-7> : vector<32xi32>
  %q = arith.floordivsi %both, %three : vector<32xi32>
  "tile.store"(%q, %i0, %c0) : (vector<32xi32>, memref<?xi32>, index) -> ()
""", '%i0: memref<?xi32> {tile.name = "i"}'),
}


def arrays(text: str) -> list[np.ndarray]:
    """What the program `text` runs on, the same in each call."""
    rng = np.random.default_rng(5)
    if "%i0" in text:
        return [np.zeros(30, np.int32)]
    if "memref<?x?xf32>" in text:
        return [rng.standard_normal((5, 14), dtype=np.float32) * 8, np.zeros((9, 20), np.float32)]
    return [rng.standard_normal(31, dtype=np.float32), rng.permutation(40)[:30].astype(np.int32),
            np.zeros(25, np.float32)]
