"""lstm, gru and rnn as one product over all time steps and a scan; short static sequences are unrolled.

Narrow floats are operands of products and results; gates and states between the steps are f32, but for a state that is
an operand and a result alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.dialects.xt.numeric import NARROW
from xcc.dialects.xt.reading import Attrs
from xcc.passes.xt.decompose import decomposes
from xcc.passes.xt.decompose.build import const, convert, drop, dtype, shape, take
from xcc.symbolic import Dim

UNROLL = 4  # steps; a longer sequence becomes a loop

ACTIVATIONS: dict[str, Callable[[Value, float, float], Value]] = {
    "affine": lambda x, a, b: xt.add(xt.mul(x, const(a, x)), const(b, x)),
    "elu": lambda x, a, b: xt.select(xt.compare(x, const(0, x), direction="ge"), x,
                                     xt.mul(xt.expm1(xt.minimum(x, const(0, x))), const(a, x))),
    "hardsigmoid": lambda x, a, b: xt.minimum(xt.maximum(xt.add(xt.mul(x, const(a, x)), const(b, x)), const(0, x)),
                                              const(1, x)),
    "leakyrelu": lambda x, a, b: xt.select(xt.compare(x, const(0, x), direction="ge"), x, xt.mul(x, const(a, x))),
    "relu": lambda x, a, b: xt.maximum(x, const(0, x)),
    "scaledtanh": lambda x, a, b: xt.mul(xt.tanh(xt.mul(x, const(b, x))), const(a, x)),
    "sigmoid": lambda x, a, b: xt.sigmoid(x),
    "softplus": lambda x, a, b: xt.add(xt.maximum(x, const(0, x)), xt.log1p(xt.exp(xt.neg(xt.abs_(x))))),
    "softsign": lambda x, a, b: xt.div(x, xt.add(xt.abs_(x), const(1, x))),
    "tanh": lambda x, a, b: xt.tanh(x),
    "thresholdedrelu": lambda x, a, b: xt.select(xt.compare(x, const(a, x), direction="gt"), x, const(0, x)),
}
Step = Callable[[int, Value, Sequence[Value]], list[Value]]


def activate(a: Attrs, index: int, x: Value) -> Value:
    """Function `index` of the op on x, which is clipped first."""
    if a.clip:
        x = xt.minimum(xt.maximum(x, const(-a.clip, x)), const(a.clip, x))
    return ACTIVATIONS[a.activations[index]](x, a.alphas[index], a.betas[index])


def split(x: Value, count: int) -> list[Value]:
    """`count` equal parts of the last dim."""
    size = shape(x)[-1] // count
    return [take(x, -1, i * size, (i + 1) * size) for i in range(count)]


def wide(kind: str) -> str:
    """The type that gates and states have."""
    return "f32" if kind in NARROW else kind


def project(x: Value, w: Value, d: int) -> Value:
    """x times the transposed matrix of direction `d`, as sums are formed."""
    matrix = drop(take(w, 0, d, d + 1), 0)
    return xt.dot_general(convert(x, dtype(w)), matrix, lhs_contract=(len(shape(x)) - 1,), rhs_contract=(1,),
                          dtype=wide(dtype(w)))


def row(b: Value, d: int, kind: str = "") -> Value:
    """Direction `d` of a bias or of states as `kind`, by default in the type of sums."""
    return convert(drop(take(b, 0, d, d + 1), 0), kind or wide(dtype(b)))


def hidden_type(x: Value, r: Value) -> str:
    """The type between the steps of a state that products and results alone read."""
    return dtype(x) if dtype(x) == dtype(r) else wide(dtype(r))


def biases(b: Value, d: int) -> list[Value]:
    """Direction `d` of what is added to the inputs' products and to the states'."""
    return split(row(b, d), 2)


def _both_biases(b: Value | None) -> Callable[[int], Value] | None:
    """Where both are added to the same sum: their sum."""
    return None if b is None else lambda d: xt.add(*biases(b, d))


def _flip(x: Value, lengths: Value) -> Value:
    """[seq, batch, ...] with each row's first `lengths` steps backwards."""
    seq, batch = shape(x)[:2]
    time = xt.iota(shape=(batch, seq), axis=1)
    size = xt.reshape(convert(lengths, "i64"), shape=(batch, 1))
    back = xt.sub(xt.sub(size, xt.scalar(1, "i64")), time)
    index = xt.select(xt.compare(time, size, direction="lt"), back, time)
    order = (1, 0, *range(2, len(shape(x))))
    return xt.transpose(xt.gather(xt.transpose(x, perm=order), index, axis=1, batch_dims=1), perm=order)


def _masked(step: Step, lengths: Value | None, kind: str) -> Callable[..., tuple[list[Value], Value]]:
    """One step, which gives `kind`; rows beyond their length keep their states and give 0."""

    def run(d: int, x: Value, time: Value, states: Sequence[Value]) -> tuple[list[Value], Value]:
        new = step(d, x, states)
        out = convert(new[0], kind)
        if lengths is None:
            return new, out
        size = xt.reshape(convert(lengths, "i64"), shape=(shape(x)[0], 1))
        live = xt.compare(time, size, direction="lt")
        return [xt.select(live, n, o) for n, o in zip(new, states, strict=True)], xt.select(live, out, const(0, out))

    return run


def run(a: Attrs, x: Value, w: Value, bias: Callable[[int], Value] | None, hidden: Dim, initial: Sequence[Value | None],
        lengths: Value | None, step: Step, kinds: Sequence[str]) -> list[Value]:
    """All hidden states [seq, dirs, batch, H] and the last states. `step` gets x w + bias(direction) of its time, and
    states of the types `kinds`."""
    seq, batch = shape(x)[:2]
    outs, lasts = [], []
    for d in range(2 if a.direction == "bidirectional" else 1):
        backward = a.direction == "reverse" or d == 1
        xs = project(x, w, d)
        if bias is not None:
            xs = xt.add(xs, bias(d))
        if backward and lengths is not None:
            xs = _flip(xs, lengths)
        states = [xt.broadcast(xt.scalar(0, kind), shape=(batch, hidden)) if s is None else row(s, d, kind)
                  for s, kind in zip(initial, kinds, strict=True)]
        one = _masked(step, lengths, dtype(x))
        states, ys = _over_time(one, d, xs, states, seq, backward and lengths is None)
        if backward and lengths is not None:
            ys = _flip(ys, lengths)
        outs.append(xt.reshape(ys, shape=(seq, 1, batch, hidden)))
        lasts.append([xt.reshape(convert(s, dtype(x)), shape=(1, batch, hidden)) for s in states])
    if len(outs) == 1:
        return [outs[0], *lasts[0]]
    return [xt.concatenate(*outs, axis=1), *(xt.concatenate(*s, axis=0) for s in zip(*lasts, strict=True))]


def _over_time(step: Callable[..., tuple[list[Value], Value]], d: int, xs: Value, states: list[Value], seq: Dim,
               backward: bool) -> tuple[list[Value], Value]:
    if isinstance(seq, int) and 0 < seq <= UNROLL:
        ys: dict[int, Value] = {}
        for t in reversed(range(seq)) if backward else range(seq):
            states, y = step(d, drop(take(xs, 0, t, t + 1), 0), xt.scalar(t, "i64"), states)
            ys[t] = xt.reshape(y, shape=(1, *shape(y)))
        return states, xt.concatenate(*(ys[t] for t in range(seq)), axis=0)

    def body(carried: Sequence[Value], cuts: Sequence[Value]) -> tuple[list[Value], list[Value]]:
        new, y = step(d, cuts[0], cuts[1], carried)
        return new, [y]

    out = xt.scan(states, [xs, xt.iota(shape=(seq,))], body, reverse=[int(backward)] * 2, out_reverse=[int(backward)])
    return list(out[:-1]), out[-1]


@decomposes("lstm")
def lstm(a: Attrs, x: Value, w: Value, r: Value, b: Value | None, lengths: Value | None, h0: Value | None,
         c0: Value | None, p: Value | None) -> list[Value]:
    """Gates i, o, f, c; see xt.lstm."""
    hidden, kind = shape(r)[2], hidden_type(x, r)

    def step(d: int, xs: Value, states: Sequence[Value]) -> list[Value]:
        h, c = states
        i, o, f, g = split(xt.add(xs, project(h, r, d)), 4)
        peep = [None] * 3 if p is None else split(row(p, d), 3)
        i = activate(a, 3 * d, _peeped(i, peep[0], c))
        f = xt.sub(const(1, i), i) if a.input_forget else activate(a, 3 * d, _peeped(f, peep[2], c))
        c = xt.add(xt.mul(f, c), xt.mul(i, activate(a, 3 * d + 1, g)))
        o = activate(a, 3 * d, _peeped(o, peep[1], c))
        bent = ACTIVATIONS[a.activations[3 * d + 2]](c, a.alphas[3 * d + 2], a.betas[3 * d + 2])
        return [convert(xt.mul(o, bent), kind), c]

    return run(a, x, w, _both_biases(b), hidden, [h0, c0], lengths, step, [kind, wide(dtype(r))])


def _peeped(gate: Value, weight: Value | None, cell: Value) -> Value:
    return gate if weight is None else xt.add(gate, xt.mul(weight, cell))


@decomposes("gru")
def gru(a: Attrs, x: Value, w: Value, r: Value, b: Value | None, lengths: Value | None,
        h0: Value | None) -> list[Value]:
    """Gates z, r, h; see xt.gru. A state of narrow floats goes from step to step in both types: the product of the next
    one reads it so without a conversion of its own."""
    hidden, kinds = shape(r)[2], list(dict.fromkeys((wide(dtype(r)), hidden_type(x, r))))

    def products(h: Value, d: int, first: int, last: int) -> Value:
        """The states' part of the gates from `first` up to `last`."""
        matrix = take(take(r, 0, d, d + 1), 1, first * hidden, last * hidden)
        out = project(h, matrix, 0)
        return out if b is None else xt.add(out, take(biases(b, d)[1], 0, first * hidden, last * hidden))

    def step(d: int, xs: Value, states: Sequence[Value]) -> list[Value]:
        h, *narrow = states
        read = narrow[0] if narrow else h
        together = products(read, d, 0, 3) if a.linear_before_reset else None
        gates = products(read, d, 0, 2) if together is None else take(together, -1, 0, 2 * hidden)
        z, reset = split(activate(a, 2 * d, xt.add(take(xs, -1, 0, 2 * hidden), gates)), 2)
        right = products(xt.mul(reset, h), d, 2, 3) if together is None \
            else xt.mul(reset, take(together, -1, 2 * hidden, 3 * hidden))
        n = activate(a, 2 * d + 1, xt.add(take(xs, -1, 2 * hidden, 3 * hidden), right))
        new = xt.add(xt.mul(xt.sub(const(1, z), z), n), xt.mul(z, h))
        return [convert(new, kind) for kind in kinds]

    return run(a, x, w, None if b is None else lambda d: biases(b, d)[0], hidden, [h0] * len(kinds), lengths, step,
               kinds)[:2]


@decomposes("rnn")
def rnn(a: Attrs, x: Value, w: Value, r: Value, b: Value | None, lengths: Value | None,
        h0: Value | None) -> list[Value]:
    """h' = f(x w + h r + b)."""
    kind = hidden_type(x, r)

    def step(d: int, xs: Value, states: Sequence[Value]) -> list[Value]:
        return [convert(activate(a, d, xt.add(xs, project(states[0], r, d))), kind)]

    return run(a, x, w, _both_biases(b), shape(r)[2], [h0], lengths, step, [kind])

