"""The state of a draw of random numbers that is repeated: its seed and number, 16 bytes, the lowest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.shared.helpers import convert, slice_axis
from xcc.frontends.torch.registry import aten

if TYPE_CHECKING:
    from xcc.frontends.torch.context import Context

BYTES = 8


def _places() -> Value:
    """How far to the left each byte of a word lies, [1, 8]."""
    return xt.mul(xt.iota(shape=(1, BYTES), axis=1, dtype="i64"), xt.scalar(8, "i64"))


@aten("draw_state.default", namespace="xcc")
def draw_state(cx: Context) -> Value:
    """The run's seed and a number that no other draw has, at the beginning of a tensor as long as torch's states."""
    seed, number = (xt.reshape(w, shape=(1, 1)) for w in cx.random_words())
    parts = xt.and_(xt.shift_right(xt.concatenate(seed, number, axis=0), _places()), xt.scalar(255, "i64"))
    state = xt.reshape(convert(parts, "ui8"), shape=(2 * BYTES,))
    (size,) = cx.out().shape
    return xt.pad(state, low=(0,), high=(size - 2 * BYTES,), value=0)


def words_of(state: Value) -> tuple[Value, Value]:
    """The seed and the number in a state."""
    parts = xt.reshape(convert(slice_axis(state, 0, 0, 2 * BYTES), "i64"), shape=(2, BYTES))
    words = xt.reduce(xt.shift_left(parts, _places()), kind="sum", axes=(1,))
    seed, number = (xt.reshape(slice_axis(words, 0, n, n + 1), shape=()) for n in range(2))
    return seed, number
