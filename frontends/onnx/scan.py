"""Scan: one step for each slice of its inputs."""

from __future__ import annotations

from onnx import GraphProto

from xcc import _mlir
from xcc.dialects import xt
from xcc.frontends.onnx.context import Context
from xcc.frontends.onnx.loop import TypeChanges, keeps_types, run_body
from xcc.frontends.onnx.registry import onnx_op
from xcc.frontends.onnx.stacked_sizes import Step, Values, checked_scan
from xcc.frontends.shared.helpers import unsqueeze


def _scan_step(cx: Context, body: GraphProto, states: int) -> Step:
    def step(state: Values, slices: Values) -> tuple[Values, Values]:
        out = run_body(cx, body, [*state, *slices])
        try:
            return keeps_types(state, out[:states]), out[states:]
        except TypeChanges as e:
            cx.fail(str(e))
    return step


@onnx_op("Scan", since=9)
def scan(cx: Context) -> Values:
    """states..., scans... = Scan(initial states..., scanned...; body, num_scan_inputs, axes and directions)."""
    body = cx.attr("body")
    scanned = cx.attr("num_scan_inputs")
    states = len(cx) - scanned
    carried = [cx[i] for i in range(states)]
    xs = [cx[i] for i in range(states, len(cx))]
    stacked = len(body.output) - states
    axes = [cx.normal_axis(a, cx.rank(states + i)) for i, a in enumerate(cx.attr("scan_input_axes", [0] * scanned))]

    return tuple(checked_scan(cx, carried, xs, _scan_step(cx, body, states), axes=axes,
                              reverse=cx.attr("scan_input_directions", [0] * scanned),
                              out_axes=cx.attr("scan_output_axes", [0] * stacked),
                              out_reverse=cx.attr("scan_output_directions", [0] * stacked)))


@onnx_op("Scan", since=8)
def scan_batched(cx: Context) -> Values:
    """Opset 8: dim 0 of every operand is the batch, dim 1 of scanned values the sequence; the batch is unrolled."""
    if cx.has(0):
        cx.fail("sequence_lens is not supported; convert the model to opset 9 or later")
    body, scanned = cx.attr("body"), cx.attr("num_scan_inputs")
    batch = cx.shape(1)[0]
    if not isinstance(batch, int):
        cx.fail("the batch of an opset 8 Scan must be static")
    states = len(cx) - 1 - scanned
    rows = [_scan_row(cx, body, b, states, scanned) for b in range(batch)]
    return tuple(xt.concatenate(*[unsqueeze(v, [0]) for v in column], axis=0) for column in zip(*rows, strict=True))


def _scan_row(cx: Context, body: GraphProto, b: int, states: int, scanned: int) -> Values:
    def row(i: int) -> _mlir.Value:
        shape = cx.shape(i)
        part = xt.slice(cx[i], starts=(b, *[0] * (len(shape) - 1)), limits=(b + 1, *shape[1:]))
        return xt.reshape(part, shape=shape[1:])

    values = [row(i) for i in range(1, len(cx))]
    results: Values = checked_scan(cx, values[:states], values[states:], _scan_step(cx, body, states),
                                   reverse=cx.attr("directions", [0] * scanned))
    return results
