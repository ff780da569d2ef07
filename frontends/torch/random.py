"""Random numbers: of the run's seed, an input of the program, and of a number of the node's own. Those are not torch's
numbers, but of the same distributions, and the same again for the same seed."""

from __future__ import annotations

from collections.abc import Callable
from math import log1p, pi

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.shared.helpers import convert, element, rank_of, scalar
from xcc.frontends.torch.context import Context, Shape
from xcc.frontends.torch.registry import aten

WIDE = "f32"     # numbers are drawn in it
LEAST = 2.0**-24      # the distance of two numbers that are drawn


def uniform(cx: Context, shape: Shape, low: float = 0.0, high: float = 1.0) -> Value:
    """f32 in [low, high)."""
    return xt.random_uniform(*cx.random_words(), shape=shape, low=low, high=high, dtype=WIDE)


def normal(cx: Context, shape: Shape) -> Value:
    """f32 of mean 0 and deviation 1."""
    return xt.random_normal(*cx.random_words(), shape=shape, dtype=WIDE)


def _drawn(draw: Callable[[Context, Shape], Value]) -> Callable[[Context], Value]:
    def converted(cx: Context) -> Value:
        return convert(draw(cx, cx.out().shape), cx.out().dtype)

    return converted


aten("rand", "rand_like")(_drawn(uniform))
aten("randn", "randn_like")(_drawn(normal))


@aten("uniform", "uniform_")
def uniform_between(cx: Context) -> Value:
    low, high = float(cx.get("from", 0)), float(cx.get("to", 1))
    return convert(uniform(cx, cx.out().shape, low, high), cx.out().dtype)


@aten("normal_functional", "normal.float_float", "normal.Tensor_float", "normal.float_Tensor", "normal.Tensor_Tensor")
def normal_around(cx: Context) -> Value:
    """mean + std * a normal number."""
    shape = cx.out().shape
    mean, deviation = (cx.value_of(cx.get(name, value), WIDE) for name, value in (("mean", 0.0), ("std", 1.0)))
    return convert(xt.add(mean, xt.mul(deviation, normal(cx, shape))), cx.out().dtype)


@aten("exponential")
def exponential(cx: Context) -> Value:
    """-log(1 - u) / lambd."""
    noise = xt.neg(xt.log(xt.sub(xt.scalar(1.0, WIDE), uniform(cx, cx.out().shape))))
    return convert(xt.div(noise, cx.value_of(float(cx.get("lambd", 1)), WIDE)), cx.out().dtype)


@aten("log_normal")
def log_normal(cx: Context) -> Value:
    """exp(mean + std * a normal number)."""
    mean, deviation = (xt.scalar(float(cx.get(name, value)), WIDE) for name, value in (("mean", 1.0), ("std", 2.0)))
    return convert(xt.exp(xt.add(mean, xt.mul(deviation, normal(cx, cx.out().shape)))), cx.out().dtype)


@aten("cauchy")
def cauchy(cx: Context) -> Value:
    """median + sigma * tan(pi * (u - 1/2))."""
    median, sigma = (xt.scalar(float(cx.get(name, value)), WIDE) for name, value in (("median", 0.0), ("sigma", 1.0)))
    angle = xt.mul(xt.scalar(pi, WIDE), uniform(cx, cx.out().shape, LEAST - 0.5, 0.5))
    return convert(xt.add(median, xt.mul(sigma, xt.tan(angle))), cx.out().dtype)


@aten("geometric")
def geometric(cx: Context) -> Value:
    """How many trials of chance p there are up to the first that succeeds: 1 and more."""
    p = float(cx["p"])
    u = uniform(cx, cx.out().shape, LEAST, 1.0)
    failures = xt.floor(xt.div(xt.log(u), xt.scalar(log1p(-p) if p < 1 else float("-inf"), WIDE)))
    return convert(xt.add(failures, xt.scalar(1.0, WIDE)), cx.out().dtype)


@aten("randint", "randint.low", "randint_like", "randint_like.low_dtype")
def randint(cx: Context) -> Value:
    """Whole numbers from low up to, not including, high: drawn from 2^24 places, as far as they differ."""
    low, high = cx.get("low", 0), cx["high"]
    span = cx.value_of(high - low, WIDE)
    places = convert(xt.floor(xt.mul(uniform(cx, cx.out().shape), span)), "i64")
    places = xt.minimum(places, xt.sub(cx.value_of(high - low, "i64"), xt.scalar(1, "i64")))
    return convert(xt.add(places, cx.value_of(low, "i64")), cx.out().dtype)


@aten("randperm")
def randperm(cx: Context) -> Value:
    """0, 1, ... n - 1 in an order that random numbers are sorted by."""
    return convert(xt.sort(uniform(cx, cx.out().shape), axis=0)[1], cx.out().dtype)


@aten("bernoulli", "bernoulli.p", "bernoulli.Tensor")
def bernoulli(cx: Context) -> Value:
    """1 with the probability p, or that which each element gives."""
    chance = cx.value_of(cx["p"] if "p" in cx.args else cx["self"], WIDE)
    return convert(xt.compare(uniform(cx, cx.out().shape), chance, direction="lt"), cx.out().dtype)


def survivors(words: tuple[Value, Value], shape: Shape, p: float) -> Value:
    """i1: which elements a dropout of p leaves; the same ones for the same words (see :meth:`Context.random_words`)."""
    drawn = xt.random_uniform(*words, shape=shape, low=0.0, high=1.0, dtype=WIDE)
    return xt.compare(drawn, xt.scalar(p, WIDE), direction="ge")


def dropped(x: Value, left: Value, p: float) -> Value:
    """x where `left`, larger by 1 / (1 - p), else 0."""
    return xt.select(left, xt.mul(x, scalar(1 / (1 - p) if p < 1 else 0.0, x)), scalar(0, x))


@aten("native_dropout")
def native_dropout(cx: Context) -> tuple[Value, Value]:
    """input without a share of p and the rest larger by 1 / (1 - p), and which are left; all without training."""
    x, p = cx.tensor("input"), float(cx["p"])
    shape = xt.shape_of(x)
    if not cx.get("train", True):
        return x, xt.broadcast(xt.scalar(True, "i1"), shape=shape)
    left = survivors(cx.random_words(), shape, p)
    return dropped(x, left, p), left


@aten("rrelu_with_noise_functional")
def rrelu(cx: Context) -> tuple[Value, Value]:
    """self, times a number between lower and upper where it is not above 0; and that number, else 1."""
    x = cx.tensor("self")
    one = scalar(1, x)
    low, high = float(cx["lower"]), float(cx["upper"])
    slope = convert(uniform(cx, xt.shape_of(x), low, high), element(x)) if cx["training"] \
        else scalar((low + high) / 2, x)
    noise = xt.select(xt.compare(x, scalar(0, x), direction="gt"), one, slope)
    return xt.mul(x, noise), noise


@aten("multinomial")
def multinomial(cx: Context) -> Value:
    """Places drawn with chances that the elements of a row are in proportion to, each once without replacement: those
    of the largest log(chance) + Gumbel's noise."""
    chance = convert(cx.tensor("self"), WIDE)
    rank, count = rank_of(chance), cx.dims("num_samples")[0]
    shape = xt.shape_of(chance)
    again = bool(cx["replacement"])
    drawn = (*shape[:-1], count, shape[-1]) if again else shape
    noise = xt.neg(xt.log(xt.neg(xt.log(uniform(cx, drawn, LEAST, 1.0)))))
    line = xt.log(chance)
    if not again:
        return xt.top_k(xt.add(line, noise), k=count, axis=rank - 1)[1]
    wide = xt.reshape(line, shape=(*shape[:-1], 1, shape[-1]))
    return xt.arg_reduce(xt.add(wide, noise), kind="argmax", axis=rank)
