"""A kernel that fills the shared memory of all cores of an NVIDIA GPU with NaN, before the kernel that is tested."""

from __future__ import annotations

from typing import Any

THREADS = 1024
NAME = "fill_shared"
# What is written is read again and stored, so that no store is dropped.
KERNEL = """
gpu.module @poison {{
  gpu.func @fill_shared(%out: memref<1024xi32>) kernel attributes
      {{known_block_size = array<i32: 1024, 1, 1>, xcc.grid = "1", xcc.shared_bytes = {bytes} : i64, xt.kernel,
       xt.arg_dims = [], xt.result_dims = [[1024]], xt.symbols = []}} {{
    %c0 = arith.constant 0 : index
    %step = arith.constant 1024 : index
    %words = arith.constant {words} : index
    %poison = arith.constant -1 : i32
    %t = gpu.thread_id x
    %raw = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %shared = memref.view %raw[%c0][]
        : memref<?xi8, #gpu.address_space<workgroup>> to memref<{words}xi32, #gpu.address_space<workgroup>>
    scf.for %i = %t to %words step %step {{
      memref.store %poison, %shared[%i] : memref<{words}xi32, #gpu.address_space<workgroup>>
    }}
    gpu.barrier
    %last = arith.constant {last} : index
    %from = arith.subi %last, %t : index
    %word = memref.load %shared[%from] : memref<{words}xi32, #gpu.address_space<workgroup>>
    memref.store %word, %out[%t] : memref<1024xi32>
    gpu.return
  }}
}}
"""


def shared_poison(chip_name: str) -> bytes:
    """The kernel's PTX for a chip, all of whose shared memory a workgroup takes."""
    from xcc._mlir import ir
    from xcc.passes.base import PassContext
    from xcc.targets.nvptx.chip import chips
    from xcc.targets.nvptx.emit import ptx_of
    from xcc.targets.nvptx.pipeline import kernel_pipeline

    chip = chips()[chip_name]
    words = chip.shared_bytes // 4
    with ir.Context():
        module = ir.Module.parse(KERNEL.format(bytes=4 * words, words=words, last=words - 1))
        kernel_pipeline().after("gpu").run(module, PassContext(chip=chip))
        return f"// {4 * words}\n{ptx_of(module, chip)}".encode()


class SharedPoison:
    """Fills shared memory on the driver's GPU; `ptx` is what `shared_poison` gave for it."""

    def __init__(self, driver: Any, ptx: bytes) -> None:
        from xcc.runtime.cuda_api import find_gpu

        gpu = find_gpu()
        assert gpu is not None
        self.driver, self.cores, self.bytes = driver, gpu[2], int(ptx.split(b"\n", 1)[0].removeprefix(b"// "))
        self._function = driver.function(driver.load(ptx), NAME, self.bytes)
        self._out = driver.alloc(4 * THREADS)

    def fill(self) -> None:
        """All shared memory is NaN when this returns."""
        self.driver.activate()
        self.driver.launch(self._function, (2 * self.cores, 1, 1), (THREADS, 1, 1), self.bytes, [self._out], [])
        self.driver.synchronize()
