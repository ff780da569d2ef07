"""The interpreting executor walks every kind of statement."""

from __future__ import annotations

import numpy as np

from xcc import symbolic
from xcc.interpreter.executor import InterpretingExecutor
from xcc.interpreter.machine import Options
from xcc.runtime.program import BindSymbol, Buffer, Copy, For, If, Launch, Program, SetScalar, While

N = symbolic.sym("n")
J = symbolic.sym("i")
ADD = """
gpu.module @m {
  gpu.func @add(%x: memref<?xf32>, %y: memref<?xf32>, %o: memref<?xf32>, %n: i64) kernel {
    %b = gpu.block_id x
    %a = memref.load %x[%b] : memref<?xf32>
    %c = memref.load %y[%b] : memref<?xf32>
    %s = arith.addf %a, %c : f32
    memref.store %s, %o[%b] : memref<?xf32>
    gpu.return
  }
}
"""


def run(program: Program, *inputs: np.ndarray, **symbols: int) -> list[np.ndarray]:
    return InterpretingExecutor(program, {"add": ADD}, {"w": np.float32([1, 2, 3])}, Options()).run(inputs, symbols)


def test_launch_with_weights_and_symbols() -> None:
    program = Program((Buffer("input", (N,), "f32", "x"), Buffer("weight", (3,), "f32", "w"),
                       Buffer("output", (N,), "f32", "y")),
                      (Launch("add", (0, 1, 2), (N,), (N,), (1,)),), (0,), (2,), ("n",))
    np.testing.assert_array_equal(run(program, np.float32([10, 20, 30]), n=3)[0], [11, 22, 33])


def test_control_flow() -> None:
    x, y, row, total, flag, count = range(6)
    program = Program(
        (Buffer("input", (N, 2), "f32", "x"), Buffer("output", (2,), "f32", "y"),
         Buffer("alias", (2,), "f32", base=x, offset=J * 8), Buffer("temp", (2,), "f32"),
         Buffer("temp", (1,), "i1"), Buffer("temp", (1,), "i64")),
        (SetScalar(y, (0, 0)),
         For("i", N, (Launch("add", (y, row, total), (2,), (2,), (1,)), Copy(total, y))),
         SetScalar(count, (N,)), BindSymbol("m", count),
         SetScalar(flag, (1,)),
         While((), flag, (Launch("add", (y, y, total), (2,), (2,), (1,)), Copy(total, y), SetScalar(flag, (0,)))),
         If(flag, (SetScalar(y, (7, 7)),), ())),
        (x,), (y,), ("n",))
    np.testing.assert_array_equal(run(program, np.float32([[1, 2], [3, 4], [5, 6]]), n=3)[0], [18, 24])
