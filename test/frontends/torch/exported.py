"""Exported programs: FX in, xt out.

RUN: %python %s | filecheck %s
"""

from __future__ import annotations

from typing import Any

import torch
from shown import exported
from torch.export import Dim


class Symbols(torch.nn.Module):
    """Named dims and ranges, sizes that are expressions of them, and a size as a result."""

    def forward(self, x: Any, y: Any) -> Any:
        joined = torch.cat((x, y))
        return joined.reshape(-1, 2), x.shape[0] * 3


# CHECK-LABEL: === Symbols
# CHECK: user x: f32[n, 4]
# CHECK-NEXT: user y: f32[m, 4]
# CHECK-NEXT: cat = aten.cat.default(tensors=[%x, %y], dim=0): f32[m + n, 4]
# CHECK: return out0 = %view
# CHECK-NEXT: return out1 = 3*n
# CHECK: xt.dims = {m = [0, 2147483647], n = [0, 8]}
# CHECK: @main(%[[X:.*]]: tensor<?x4xf32, ["n", 4]> {xt.name = "x"} {{.*}}, %[[Y:.*]]: tensor<?x4xf32, ["m", 4]> {
# CHECK: %[[J:.*]] = "xtv.concatenate"(%[[X]], %[[Y]]) {{.*}} -> tensor<?x4xf32, ["m + n", 4]>
# CHECK: "xt.reshape"(%[[J]]) {{.*}} -> tensor<?x2xf32, ["2*m + 2*n", 2]>
# CHECK: "xt.dim"() {value = ["3*n"]}
exported(Symbols(), torch.randn(3, 4), torch.randn(5, 4),
         dynamic_shapes=({0: Dim("n", max=8)}, {0: Dim("m")}))


class State(torch.nn.Module):
    """A buffer that is written, a weight with two names, nested inputs and outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(4, 4)
        self.second = torch.nn.Linear(4, 4, bias=False)
        self.second.weight = self.first.weight
        self.register_buffer("calls", torch.zeros(3))

    def forward(self, x: Any) -> Any:
        self.calls.add_(1)
        return {"y": self.second(torch.relu(self.first(x["in"])))}


# CHECK-LABEL: === State
# CHECK: parameter p_first_weight: f32[4, 4]
# CHECK: buffer b_calls: f32[3]
# CHECK: return new b_calls = %[[ADD:.*]] into b_calls
# CHECK: @main(%[[CALLS:.*]]: tensor<3xf32> {xt.name = "calls", xt.state = "calls"}
# CHECK-SAME: -> (tensor<3xf32> {xt.name = "new b_calls", xt.updates = "calls"}, tensor<2x4xf32> {xt.name = "y"})
# CHECK-COUNT-2: "xt.weight"
# CHECK-NOT: "xt.weight"
# CHECK: "xt.add"(%[[CALLS]], {{.*}} loc(#[[WRITE:.*]])
# CHECK: "xt.maximum"({{.*}} loc(#[[RELU:.*]])
# CHECK: #[[AT_WRITE:.*]] = loc("exported.py":[[# @LINE - 14]]:0)
# CHECK: #[[AT_RELU:.*]] = loc("exported.py":[[# @LINE - 14]]:0)
# CHECK: #[[WRITE]] = loc("add"(#[[AT_WRITE]]))
# CHECK: #[[RELU]] = loc("relu"(#[[AT_RELU]]))
exported(State(), {"in": torch.randn(2, 4)})


class Computed(torch.nn.Module):
    """A size that only a run can tell, and a number that sizes make."""

    def forward(self, x: Any) -> Any:
        return torch.nonzero(x), x / x.shape[0]**0.5


# CHECK-LABEL: === Computed
# CHECK: nonzero = aten.nonzero.default(self=%x): i64[nonzero_size, 2]
# CHECK: pow_1 = scalar.pow(arg0=%sym_float, arg1=0.5): f64[]
# CHECK: "xt.nonzero"{{.*}} -> tensor<2x?xi64, [2, "nonzero_size"]>
# CHECK: "xt.dim"() {value = ["n"]}
# CHECK: "xt.div"
exported(Computed(), torch.randn(3, 4), dynamic_shapes=({0: Dim("n")},))
