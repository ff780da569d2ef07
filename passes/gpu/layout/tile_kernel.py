"""A kernel whose vectors have layouts, as passes see it, and the builder of its threads' code."""

from __future__ import annotations

from collections.abc import Iterator

from xcc._mlir import Block, Module, Operation, Value, ir
from xcc.diagnostics import CompilerBug
from xcc.passes.gpu.layout.contraction import Contraction
from xcc.passes.gpu.layout.linear import Layout
from xcc.passes.gpu.layout.tile_ops import LAYOUT, config_int, words
from xcc.passes.shared.values import is_vector
from xcc.passes.walk import walk
from xcc.targets.base import Chip


class TileKernel:
    """The kernel `func`, computed by workgroups of `threads` on `chip`."""

    def __init__(self, func: Operation, chip: Chip, threads: int) -> None:
        self.func, self.chip, self.threads = func, chip, threads
        self.layouts: dict[Value, Layout] = {}
        self.products: dict[Operation, Contraction] = {}

    def ops(self, name: str) -> list[Operation]:
        """The operations called `name`, outer before inner."""
        return [op for op in walk(self.func.operation.regions[0].blocks[0]) if op.name == name]

    def layout(self, value: Value) -> Layout:
        """The layout assigned to a vector of the tile program."""
        if value not in self.layouts:
            owner = value.owner
            if isinstance(owner, ir.Block):
                self.layouts[value] = self._of_argument(value, owner)
            else:
                op = owner.operation
                if LAYOUT not in op.attributes:
                    raise CompilerBug(f"{op.name} has no layout: run assign-layouts before distribute")
                vectors = [r for r in op.results if is_vector(r)]
                for r, text in zip(vectors, op.attributes[LAYOUT], strict=True):
                    self.layouts[r] = Layout.parse(text.value)
        return self.layouts[value]

    def _of_argument(self, value: Value, block: Block) -> Layout:
        parent, i = block.owner.operation, ir.BlockArgument(value).arg_number
        if parent.name == "scf.while":
            return self.layout(parent.operands[i] if block == parent.regions[0].blocks[0] else parent.results[i])
        return self.layout(parent.results[i - 1])

    def words(self, value: Value) -> int:
        """Registers of 4 bytes of a thread that a vector takes."""
        return words(self.layout(value), value)

    def product(self, op: Operation) -> Contraction:
        """How the vector.contract `op` is spread over warps."""
        if op not in self.products:
            self.products[op] = Contraction(op, self.chip, self.threads // self.chip.warp)
        return self.products[op]


def tile_kernels(module: Module, chip: Chip) -> Iterator[TileKernel]:
    """The kernels of `module` that are tile programs."""
    for func in module.body.operations:
        attributes = func.operation.attributes
        if func.operation.name == "func.func" and "xt.kernel" in attributes and "xcc.loops" not in attributes:
            yield TileKernel(func, chip, config_int(func, "threads", 128))
