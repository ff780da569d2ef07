"""LSTM, GRU and RNN cells, and scans, compiled for the CPU, over shapes, types and options."""

from __future__ import annotations

from typing import Any

import numpy as np
from compiled import BF16, check, examples, filled
from hypothesis import given
from hypothesis import strategies as st

from xcc.dialects import xt
from xcc.dialects.xt.recurrent import ACTIVATIONS

GATES = {"lstm": 4, "gru": 3, "rnn": 1}
FUNCTIONS = {"lstm": 3, "gru": 2, "rnn": 1}
TYPES = [np.dtype(t) for t in (np.float32, np.float32, np.float16, BF16, np.float64)]


@given(st.data())
@examples(18)
def test_cells(data: Any) -> None:
    """Every direction, clip and activation; with and without bias, lengths, initial states and peepholes."""
    name, dtype = data.draw(st.sampled_from(sorted(GATES))), data.draw(st.sampled_from(TYPES))
    seq, batch, width, hidden = (data.draw(st.sampled_from(s)) for s in
                                 ([0, 1, 2, 5], [1, 1, 2, 3], [1, 3, 17], [1, 2, 5, 16]))
    direction = data.draw(st.sampled_from(["forward", "reverse", "bidirectional"]))
    dirs, gates = 1 + (direction == "bidirectional"), GATES[name]
    state = (dirs, batch, hidden)
    wanted = [(dirs, gates * hidden, width), (dirs, gates * hidden, hidden), (dirs, 2 * gates * hidden)]
    wanted += [state] * (2 if name == "lstm" else 1) + [(dirs, 3 * hidden)] * (name == "lstm")
    x, w, r, *rest = (filled(s, dtype, i, -1, 1) for i, s in enumerate([(seq, batch, width), *wanted]))
    rest.insert(1, np.random.default_rng(9).integers(0, seq + 1, batch).astype(np.int32))
    given_ = [v if data.draw(st.booleans()) else None for v in rest]
    options: dict[str, Any] = {"direction": direction, "clip": data.draw(st.sampled_from([0.0, 0.0, 0.5]))}
    if data.draw(st.booleans()):
        options["activations"] = [data.draw(st.sampled_from(sorted(ACTIVATIONS)))
                                  for _ in range(dirs * FUNCTIONS[name])]
    if name == "gru":
        options["linear_before_reset"] = data.draw(st.integers(0, 1))
    if name == "lstm":
        options["input_forget"] = data.draw(st.booleans())

    def body(x: Any, w: Any, r: Any, *present: Any) -> Any:
        left = iter(present)
        return getattr(xt, name)(x, w, r, *(None if v is None else next(left) for v in given_), **options)

    check(body, x, w, r, *(v for v in given_ if v is not None), dynamic=data.draw(st.booleans()), tolerance=4)


@given(st.data())
@examples(8)
def test_scan(data: Any) -> None:
    """A loop over slices along any axis, in either direction, stacked along any axis."""
    length = data.draw(st.sampled_from([0, 1, 2, 7]))
    shape = [data.draw(st.sampled_from([1, 3, 8])) for _ in range(data.draw(st.integers(0, 2)))]
    axis, out_axis = (data.draw(st.integers(0, len(shape))) for _ in range(2))
    flags = [data.draw(st.integers(0, 1)) for _ in range(2)]
    x = filled([*shape[:axis], length, *shape[axis:]], np.float32)

    def step(state: Any, slices: Any) -> Any:
        total = xt.add(state[0], slices[0])
        return [xt.tanh(total)], [xt.mul(total, slices[0]), slices[0]]

    check(lambda s, x: xt.scan([s], [x], step, axes=[axis], reverse=flags[:1], out_axes=[out_axis, 0],
                               out_reverse=[flags[1], 0]), filled(shape, np.float32, 1), x)


@given(st.data())
@examples(6)
def test_while_and_if(data: Any) -> None:
    """Control flow that data decides: a count of steps that may be zero, and branches."""
    steps, x = data.draw(st.sampled_from([0, 1, 5])), filled((data.draw(st.sampled_from([0, 1, 7])), 3), np.float32)

    def body(n: Any, x: Any) -> Any:
        zero, one = xt.scalar(0, "i64"), xt.scalar(1, "i64")
        _, y = xt.while_([zero, x], lambda i, v: xt.compare(i, n, direction="lt"),
                         lambda i, v: (xt.add(i, one), xt.tanh(xt.add(v, v))))
        even = xt.compare(xt.mod(n, xt.scalar(2, "i64")), zero, direction="eq")
        z, = xt.if_(even, lambda: xt.neg(y), lambda: xt.reduce(y, kind="sum", axes=[0], keepdims=True)
                    if x.type.shape[0] == 1 else xt.exp(y))
        return y, z

    check(body, np.array(steps, np.int64), x, dynamic=data.draw(st.booleans()), tolerance=4)
