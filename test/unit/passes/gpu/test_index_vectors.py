"""What is known of index vectors."""

from __future__ import annotations

from xcc._mlir import ir
from xcc.context import shared_context
from xcc.passes.gpu.index.index_vectors import step_along


def test_values_that_are_shared_are_looked_at_once():
    text = ["func.func @f() -> vector<8xindex> {", "  %v0 = vector.step : vector<8xindex>"]
    text += [f"  %v{n + 1} = arith.addi %v{n}, %v{n} : vector<8xindex>" for n in range(60)]
    with shared_context():
        module = ir.Module.parse("\n".join([*text, "  return %v60 : vector<8xindex>", "}"]))
        function = module.body.operations[0]
        last = list(function.regions[0].blocks[0].operations)[-1]
        assert step_along(last.operands[0], 4) == (1 << 60, 4)
