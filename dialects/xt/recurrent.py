"""LSTM, GRU and RNN with ONNX's layouts, gate orders and options."""

from collections.abc import Callable
from typing import Any

import numpy as np

from xcc.dialects.xt import elementary
from xcc.dialects.xt.broadcasting import same_dtype
from xcc.dialects.xt.fields import boolean, integer, number, numbers, operand, optional, text, texts
from xcc.dialects.xt.norm import check_float
from xcc.dialects.xt.numeric import Array
from xcc.dialects.xt.op import Attrs, InferError, XtOp, agree
from xcc.dialects.xt.products import matmul
from xcc.dialects.xt.types import TensorType

DIRECTIONS = ("forward", "reverse", "bidirectional")
# name: (default alpha, default beta, function of x, alpha, beta)
ACTIVATIONS: dict[str, tuple[float, float, Callable[..., Any]]] = {
    "affine": (1.0, 0.0, lambda x, a, b: a * x + b),
    "elu": (1.0, 0.0, lambda x, a, b: np.where(x >= 0, x, a * (elementary.exp(np.minimum(x, 0)) - 1))),
    "hardsigmoid": (0.2, 0.5, lambda x, a, b: np.clip(a * x + b, 0, 1)),
    "leakyrelu": (0.01, 0.0, lambda x, a, b: np.where(x >= 0, x, a * x)),
    "relu": (0.0, 0.0, lambda x, a, b: np.maximum(x, 0)),
    "scaledtanh": (1.0, 1.0, lambda x, a, b: a * elementary.tanh(b * x)),
    "sigmoid": (0.0, 0.0, lambda x, a, b: elementary.sigmoid(x)),
    "softplus": (0.0, 0.0, lambda x, a, b: elementary.logaddexp(x, 0)),
    "softsign": (0.0, 0.0, lambda x, a, b: x / (1 + np.abs(x))),
    "tanh": (0.0, 0.0, lambda x, a, b: elementary.tanh(x)),
    "thresholdedrelu": (1.0, 0.0, lambda x, a, b: np.where(x > a, x, 0)),
}


def directions(a: Attrs) -> int:
    return 2 if a.direction == "bidirectional" else 1


def check_types(a: Attrs, gates: int, states: int, x: TensorType, w: TensorType, r: TensorType, b: TensorType | None,
                lengths: TensorType | None, *rest: TensorType | None) -> tuple[TensorType, ...]:
    """Checks the operands; gives the types of all hidden states and of the last ones (`states` of them)."""
    same_dtype(check_float(x), w, r)
    if x.rank != 3 or w.rank != 3 or r.rank != 3:
        raise InferError("x is [seq, batch, input], w [dirs, gates*hidden, input], r [dirs, gates*hidden, hidden]")
    dirs, hidden = directions(a), r.shape[2]
    last = x.with_shape((dirs, x.shape[1], hidden))
    wanted = [("w", w, (dirs, gates * hidden, x.shape[2])), ("r", r, (dirs, gates * hidden, hidden)),
              ("b", b, (dirs, 2 * gates * hidden)), *((f"initial state {i}", s, last.shape)
                                                      for i, s in enumerate(rest[:states]))]
    wanted += [("p", p, (dirs, 3 * hidden)) for p in rest[states:]]
    for what, have, shape in wanted:
        want = TensorType(tuple(shape), x.dtype)
        if have is not None and not agree(have, want):
            raise InferError(f"{what} is {have}, not {want}")
    if lengths is not None and (lengths.rank != 1 or lengths.dtype not in ("i32", "i64")):
        raise InferError(f"sequence lengths are {lengths}, not an i32 vector")
    if len(a.activations) != len(a.alphas) or len(a.activations) != len(a.betas):
        raise InferError("activations, alphas and betas differ in length")
    return (x.with_shape((x.shape[0], dirs, x.shape[1], hidden)), *([last] * states))


def complete_activations(a: Attrs, defaults: tuple[str, ...]) -> None:
    """One lower-case name, alpha and beta for each function of each direction."""
    count = len(defaults) * directions(a)
    names = [n.lower() for n in (a.activations or defaults * directions(a))]
    for n in names:
        if n not in ACTIVATIONS:
            raise InferError(f"activation '{n}' is none of {', '.join(ACTIVATIONS)}")
    if len(names) != count:
        raise InferError(f"{len(names)} activations, {count} are needed")
    a.activations = tuple(names)
    a.alphas = tuple(a.alphas or (ACTIVATIONS[n][0] for n in names))
    a.betas = tuple(a.betas or (ACTIVATIONS[n][1] for n in names))


def activation(a: Attrs, index: int) -> Callable[[Array], Array]:
    f = ACTIVATIONS[a.activations[index]][2]
    return lambda x: f(x, a.alphas[index], a.betas[index])


def clipped(a: Attrs, x: Array) -> Array:
    return np.clip(x, -a.clip, a.clip) if a.clip else x


def run(a: Attrs, x: Array, lengths: Array | None, states: list[Array],
        step: Callable[..., tuple[Any, ...]]) -> tuple[Array, ...]:
    """Runs `step(direction, x_t, states)` over time; rows beyond their length keep their state and give 0."""
    seq, batch = x.shape[:2]
    dirs, hidden = directions(a), states[0].shape[-1]
    out = np.zeros((seq, dirs, batch, hidden), x.dtype)
    last = [np.array(s) for s in states]
    lengths = np.full(batch, seq) if lengths is None else lengths
    for d in range(dirs):
        backward = a.direction == "reverse" or d == 1
        now = [s[d] for s in last]
        for t in range(seq):
            position = np.where(t < lengths, lengths - 1 - t, t) if backward else np.full(batch, t)
            new = step(d, x[position, np.arange(batch)], now)
            live = (t < lengths)[:, None]
            now = [np.where(live, n, o) for n, o in zip(new, now, strict=True)]
            out[position, d, np.arange(batch)] = np.where(live, now[0], 0)
        for s, n in zip(last, now, strict=True):
            s[d] = n
    return (out, *last)


def _cells(a: Attrs, step: Callable[..., tuple[Any, ...]], x: Array, w: Array, r: Array, b: Array | None,
           lengths: Array | None, *states: Array | None, p: Array | None = None) -> tuple[Array, ...]:
    """`step(d, x_t, states, w, r, b, p)` over time in f32 (f64 for f64), from zeros where a state is None; each result
    in x's element type."""
    wide = np.float64 if x.dtype == np.float64 else np.float32
    first = [np.zeros((r.shape[0], x.shape[1], r.shape[2]), wide) if s is None else s.astype(wide) for s in states]
    given = [None if v is None else v.astype(wide) for v in (w, r, b, p)]
    with np.errstate(all="ignore"):
        out = run(a, x.astype(wide), lengths, first, lambda d, now, held: step(d, now, held, *given))
    return tuple(np.asarray(v).astype(x.dtype) for v in out)


class _Cell(Attrs):
    """What the three share."""

    x = operand()
    w = operand()
    r = operand()
    b = optional()
    lengths = optional()
    h0 = optional()
    direction = text("forward", DIRECTIONS)
    clip = number(0.0)
    activations = texts(())
    alphas = numbers(())
    betas = numbers(())
    access = "composite"
    result_names = ("all", "last_h")  # type: tuple[str, ...]


class Lstm(_Cell, XtOp, name="lstm"):
    """Long short-term memory over x [seq, batch, input]; gates in the order i, o, f, c.

    w [dirs, 4H, input], r [dirs, 4H, H], b [dirs, 8H], lengths [batch], h0 and c0 [dirs, batch, H], peepholes p
    [dirs, 3H] in the order i, o, f. `clip` 0 means none. Results: all h [seq, dirs, batch, H], last h, last c.
    i = f(x wi + h ri + pi*c + b), o likewise with the new c, f likewise; c' = f*c + i*g(...); h = o*h(c').
    """

    c0 = optional()
    p = optional()
    input_forget = boolean(False)
    result_names = ("all", "last_h", "last_c")

    def normalize(a: Attrs, *types: TensorType | None) -> None:
        complete_activations(a, ("sigmoid", "tanh", "tanh"))

    def infer(a: Attrs, *types: Any) -> tuple[TensorType, ...]:
        return check_types(a, 4, 2, *types)

    def evaluate(a: Attrs, x: Array, w: Array, r: Array, b: Array | None, lengths: Array | None, h0: Array | None,
                 c0: Array | None, p: Array | None) -> tuple[Array, ...]:
        def step(d: int, xt: Array, states: list[Array], w: Array, r: Array, b: Array | None,
                 p: Array | None) -> tuple[Array, ...]:
            (h, c), size = states, r.shape[2]
            f, g, k = (activation(a, 3 * d + i) for i in range(3))
            total = matmul(xt, w[d].T) + matmul(h, r[d].T)
            total = total if b is None else total + b[d, :4 * size] + b[d, 4 * size:]
            i, o, forget, cell = np.split(total, 4, -1)
            pi, po, pf = (0, 0, 0) if p is None else np.split(p[d], 3)
            i = f(clipped(a, i + pi * c))
            forget = 1 - i if a.input_forget else f(clipped(a, forget + pf * c))
            c = forget * c + i * g(clipped(a, cell))
            return f(clipped(a, o + po * c)) * k(c), c

        return _cells(a, step, x, w, r, b, lengths, h0, c0, p=p)


class Gru(_Cell, XtOp, name="gru"):
    """Gated recurrent unit; gates in the order z, r, h; operands as of lstm with 3 gates and b [dirs, 6H].

    z = f(x wz + h rz + b), r likewise; n = g(x wn + (r*h) rn + b), or with `linear_before_reset`
    n = g(x wn + wbn + r*(h rn + rbn)); h' = (1 - z)*n + z*h. Results: all h, last h.
    """

    linear_before_reset = integer(0)

    def normalize(a: Attrs, *types: TensorType | None) -> None:
        complete_activations(a, ("sigmoid", "tanh"))

    def infer(a: Attrs, *types: Any) -> tuple[TensorType, ...]:
        return check_types(a, 3, 1, *types)

    def evaluate(a: Attrs, x: Array, w: Array, r: Array, b: Array | None, lengths: Array | None,
                 h0: Array | None) -> tuple[Array, ...]:
        def step(d: int, xt: Array, states: list[Array], w: Array, r: Array, b: Array | None, _: None) -> tuple[Array]:
            (h,), size = states, r.shape[2]
            f, g = (activation(a, 2 * d + i) for i in range(2))
            wb, rb = (np.zeros(3 * size, xt.dtype),) * 2 if b is None else np.split(b[d], 2)
            left = matmul(xt, w[d].T) + wb
            gates = f(clipped(a, left[:, :2 * size] + matmul(h, r[d, :2 * size].T) + rb[:2 * size]))
            z, reset = np.split(gates, 2, -1)
            rn, rbn = r[d, 2 * size:].T, rb[2 * size:]
            right = reset * (matmul(h, rn) + rbn) if a.linear_before_reset else matmul(reset * h, rn) + rbn
            n = g(clipped(a, left[:, 2 * size:] + right))
            return ((1 - z) * n + z * h,)

        return _cells(a, step, x, w, r, b, lengths, h0)


class Rnn(_Cell, XtOp, name="rnn"):
    """h' = f(x w + h r + b); operands as of lstm with 1 gate and b [dirs, 2H]. Results: all h, last h."""


    def normalize(a: Attrs, *types: TensorType | None) -> None:
        complete_activations(a, ("tanh",))

    def infer(a: Attrs, *types: Any) -> tuple[TensorType, ...]:
        return check_types(a, 1, 1, *types)

    def evaluate(a: Attrs, x: Array, w: Array, r: Array, b: Array | None, lengths: Array | None,
                 h0: Array | None) -> tuple[Array, ...]:
        def step(d: int, xt: Array, states: list[Array], w: Array, r: Array, b: Array | None, _: None) -> tuple[Array]:
            total, size = matmul(xt, w[d].T) + matmul(states[0], r[d].T), r.shape[2]
            total = total if b is None else total + b[d, :size] + b[d, size:]
            return (activation(a, d)(clipped(a, total)),)

        return _cells(a, step, x, w, r, b, lengths, h0)
