"""Loops whose loads start a step ahead on GPUs: none of any step is missing, and nothing outside is read."""

import numpy as np
import pytest

from xcc import tile

PROGRAM = """
func.func @k(%x: memref<?x?xf32> {tile.name = "x"}, %y: memref<?x?xf32> {tile.name = "y"},
             %begin: index, %end: index) attributes {tile.grid = ["x_0"]} {
  %i = "tile.program_id"() {axis = 0 : i64} : () -> index
  %c256 = arith.constant 256 : index
  %zero = arith.constant 0.0 : f32
  %none = arith.constant dense<0.0> : vector<1x256xf32>
  %r = scf.for %k = %begin to %end step %c256 iter_args(%acc = %none) -> (vector<1x256xf32>) {
    %t = "tile.load"(%x, %zero, %i, %k) {shape = [1, 256]} : (memref<?x?xf32>, f32, index, index) -> vector<1x256xf32>
    %s = arith.addf %acc, %t : vector<1x256xf32>
    "tile.store"(%s, %y, %i, %k) : (vector<1x256xf32>, memref<?x?xf32>, index, index) -> ()
    scf.yield %s : vector<1x256xf32>
  }
  return
}"""


@pytest.mark.parametrize("chip", ["sm_90a", "gfx1100"])
@pytest.mark.parametrize("begin, end", [(0, 700), (256, 512), (256, 256), (512, 3000)])
def test_running_sums_of_blocks(chip, begin, end):
    target = "nvptx" if chip.startswith("sm") else "amdgcn"
    made = tile.compile(PROGRAM, target, chip, keep=("plan",), emit=False)
    loop = next(line for line in made.stages["plan"].splitlines() if "scf.for " in line)
    assert "-> (vector<1x256xf32>, vector<256xf32>)" in loop      # the sums, and what the next step adds
    x = np.random.default_rng(0).uniform(-1, 1, (3, 700)).astype(np.float32)
    y, want = np.zeros_like(x), np.zeros_like(x)
    total = np.zeros((3, 256), np.float32)
    for k in range(begin, end, 256):
        part = x[:, k:k + 256]
        total[:, :part.shape[1]] += part
        want[:, k:k + 256] = total[:, :part.shape[1]]
    made.interpret([x, y, begin, end])
    np.testing.assert_allclose(y, want, rtol=1e-6)
