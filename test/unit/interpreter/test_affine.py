"""affine.apply, min and max in the interpreter."""

import numpy as np

from xcc.interpreter.kernel import run_kernel


def test_affine_maps():
    text = """gpu.module @m { gpu.func @k(%y: memref<3x16xi64>, %n: index) kernel {
        %t = gpu.thread_id x
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c2 = arith.constant 2 : index
        %a = affine.apply affine_map<(d0)[s0] -> ((d0 * 3 - 7) floordiv 2 + d0 mod 5 + s0 ceildiv 4)>(%t)[%n]
        %b = affine.min affine_map<(d0)[s0] -> (d0, s0 - 2, 9)>(%t)[%n]
        %c = affine.max affine_map<(d0) -> (d0 - 3, 4)>(%t)
        %ia = arith.index_cast %a : index to i64
        %ib = arith.index_cast %b : index to i64
        %ic = arith.index_cast %c : index to i64
        memref.store %ia, %y[%c0, %t] : memref<3x16xi64>
        memref.store %ib, %y[%c1, %t] : memref<3x16xi64>
        memref.store %ic, %y[%c2, %t] : memref<3x16xi64>
        gpu.return } }"""
    y = np.zeros((3, 16), np.int64)
    run_kernel(text, "k", (1, 1, 1), (16, 1, 1), [y], [10])
    t = np.arange(16)
    np.testing.assert_array_equal(y, [(t * 3 - 7) // 2 + t % 5 + 3, np.minimum(np.minimum(t, 8), 9),
                                      np.maximum(t - 3, 4)])
