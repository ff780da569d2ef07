"""Programs made with xcc.tile: the numbers of the evaluation on this CPU and in the code for GPUs."""

import math

import ml_dtypes
import numpy as np
import pytest

from xcc import tile
from xcc.diagnostics import UserError
from xcc.targets.base import chip_of, get_target

MATRIX, LINE = tile.BufferOf("f32", (None, None)), tile.BufferOf("f32", (None,))
TARGETS = [("cpu", ""), ("nvptx", "sm_90a"), ("amdgcn", "gfx1100")]


def random(*shape):
    return np.random.default_rng(3).standard_normal(shape, dtype=np.float32)


def check(program, make, targets=TARGETS, grid=(), tolerance=1e-5):
    """`make()` gives the arguments; all targets must do to them what the evaluation does."""
    want = make()
    tile.evaluate(program, want, grid)
    for target, chip in targets:
        got = make()
        tile.run(program, got, target, chip, grid)
        for a, b in zip(got, want, strict=True):
            if isinstance(a, np.ndarray):
                np.testing.assert_allclose(a.astype(np.float64), b.astype(np.float64), tolerance, tolerance)
    return want


def softmax(x, y):
    row = tile.program_id(0)
    t = x.tile((row, 0), (1, 64), other=-math.inf)
    e = tile.exp(t - t.max(axis=1, keepdims=True))
    y.store((row, 0), e / e.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("strides", [None, (None, 1), (None, None)], ids=["contiguous", "rows", "any"])
def test_softmax(strides):
    program = tile.build("softmax", {"x": tile.BufferOf("f32", (None, None), strides),
                                     "y": tile.BufferOf("f32", (None, None), strides)}, softmax, grid=("x_0",))
    if strides is None:
        x, y = check(program, lambda: [random(5, 50), np.zeros((5, 50), np.float32)])
    elif strides[1] == 1:
        x, y = check(program, lambda: [random(5, 60)[:, 7:57], np.zeros((5, 70), np.float32)[:, :50]])
    else:
        x, y = check(program, lambda: [random(50, 5).T, np.zeros((5, 100), np.float32)[:, ::2]])
    np.testing.assert_allclose(y.sum(1), 1, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_product(dtype):
    def product(a, b, c):
        i, j = tile.program_id(0) * 64, tile.program_id(1) * 64

        def step(k, s):
            return tile.dot(a.tile((i, k), (64, 32), 0), b.tile((k, j), (32, 64), 0), s)

        (acc,) = tile.for_(0, a.size(1), 32, [tile.zeros((64, 64))], step)
        c.store((i, j), tile.where(acc > 0, acc, acc * 0.01))

    operand = tile.BufferOf(dtype, (None, None))
    program = tile.build("product", {"a": operand, "b": operand, "c": MATRIX}, product,
                         grid=("floordiv(a_0 + 63, 64)", "floordiv(b_1 + 63, 64)"))
    kind = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}[dtype]
    check(program, lambda: [random(70, 50).astype(kind), random(50, 72).astype(kind), np.zeros((70, 72), np.float32)],
          tolerance=1e-4)


def test_attention():
    def attention(q, k, v, o):
        i, h, b = tile.program_id(0) * 32, tile.program_id(1), tile.program_id(2)
        rows = q.tile((b, h, i, 0), (1, 1, 32, 32), 0).reshape(32, 32)
        n = k.size(2)

        def step(j, top, total, acc):
            keys, values = (x.tile((b, h, j, 0), (1, 1, 16, 32), 0).reshape(16, 32) for x in (k, v))
            s = tile.where((tile.arange(16) + j < n)[None, :], tile.dot(rows, keys.T) * 0.2, -1e30)
            new = tile.maximum(top, s.max(1))
            p, c = tile.exp(s - new[:, None]), tile.exp(top - new)
            return new, total * c + p.sum(1), tile.dot(p, values, acc * c[:, None])

        start = [tile.full((32,), -1e30), tile.zeros((32,)), tile.zeros((32, 32))]
        _, total, acc = tile.for_(0, n, 16, start, step)
        o.store((b, h, i, 0), acc / total[:, None])

    heads = tile.BufferOf("f32", (None,) * 4)
    out = tile.BufferOf("f32", (None,) * 4, (None,) * 4)
    program = tile.build("attention", {"q": heads, "k": heads, "v": heads, "o": out}, attention,
                         grid=("floordiv(q_2 + 31, 32)", "q_1", "q_0"))
    check(program, lambda: [random(1, 3, 40, 32), random(1, 3, 37, 32), random(1, 3, 37, 32) * 2,
                            np.zeros((1, 40, 3, 32), np.float32).transpose(0, 2, 1, 3)], tolerance=1e-4)


def test_histogram_and_uniform_atomic():
    def histogram(x, h, count):
        i = tile.arange(256) + tile.program_id(0) * 256
        m = i < x.size(0)
        tile.atomic(h, "add", x.gather(i, mask=m, other=0), value=1, mask=m)
        tile.atomic(count, "add", 0, value=1.0)

    program = tile.build("histogram", {"x": tile.BufferOf("i32", (None,)), "h": tile.BufferOf("i32", (None,)),
                                       "count": LINE}, histogram, grid=("floordiv(x_0 + 255, 256)",))
    x, h, count = check(program, lambda: [(random(700) * 4).astype(np.int32) % 10, np.zeros(10, np.int32),
                                          np.zeros(1, np.float32)])
    np.testing.assert_array_equal(h, np.bincount(x, minlength=10))
    assert count[0] == 3


def test_dropout_with_numbers_given():
    def dropout(x, y, n, rate, seed):
        i = tile.arange(32) + tile.program_id(0) * 32
        kept = tile.random(seed, i) > rate
        y.scatter(i, value=tile.where(kept, x.gather(i, mask=i < n, other=0) / (1 - rate), 0), mask=i < n)

    program = tile.build("dropout", {"x": LINE, "y": LINE, "n": tile.ScalarOf("i32"), "rate": tile.ScalarOf("f32"),
                                     "seed": tile.ScalarOf("i64")}, dropout)
    x, y, *_ = check(program, lambda: [random(200), np.zeros(200, np.float32), 190, 0.25, 1 << 40 | 7], grid=(6,))
    assert not y[190:].any() and 120 < np.count_nonzero(y) < 165


def test_places_scans_and_sorts():
    def places(x, y, z):
        t = x.tile((0, 0), (4, 64))
        y.store((0,), t.argmax(1) + t.argmin(1) * 100)
        z.store((0, 0), tile.sort(t, descending=True) + t.cumsum(1) + tile.cummax(t, axis=0))

    program = tile.build("places", {"x": MATRIX, "y": tile.BufferOf("i32", (None,)), "z": MATRIX}, places, grid=(1,))
    def given():
        x = random(4, 64)
        x[1, 50:], x[2, 3:], x[3, 7:9] = np.nan, x[2, 3], [np.inf, -np.inf]
        return [x, np.zeros(4, np.int32), np.zeros((4, 64), np.float32)]

    x, y, _ = check(program, given)
    np.testing.assert_array_equal(y, x.argmax(1) + x.argmin(1) * 100)


def test_what_is_written_is_read_again():
    """Elements move between threads through memory, and from turn to turn."""
    def through(x, s):
        x.store((1,), x.tile((0,), (128,)))
        x.store((0,), x.tile((2,), (64,)) * 2)

        def step(i, t):
            s.store((0,), t + s.tile((32,), (64,), 1))
            return s.tile((1,), (64,), 0.5) + x.tile((i,), (64,))

        s.store((0,), tile.for_(0, 4, 1, [tile.zeros((64,))], step)[0])

    check(tile.build("through", {"x": LINE, "s": LINE}, through, grid=(1,)),
          lambda: [random(130), np.zeros(64, np.float32)])


def test_bools_bytes_and_views():
    def views(x, y, b, n):
        t = x.view((2, 3), (15, 20), (1, 0)).tile((1, 2), (32, 16), -1)
        y.store((0, 0), tile.where(b.tile((0,), (16,))[None, :], t, 0))
        b.store((0,), ~b.tile((0,), (16,)))
        n.store((0,), (x.tile((0, 0), (4, 16)) * 3).to("i8").reshape(64).to("ui8") // 3)

    program = tile.build("views", {"x": MATRIX, "y": MATRIX, "b": tile.BufferOf("i1", (None,)),
                                   "n": tile.BufferOf("ui8", (None,))}, views, grid=(1,))
    check(program, lambda: [random(20, 30), np.zeros((30, 20), np.float32), random(16) > 0, np.zeros(64, np.uint8)])


class Seen(tile.Watch):
    def __init__(self):
        self.reads, self.writes = [], []

    def read(self, where, program, buffer, indices, active, inside):
        self.reads.append((where, inside, bool((np.asarray(indices[0]) >= buffer.shape[0]).any())))

    def write(self, where, program, buffer, indices, active, atomic):
        self.writes.append((program, [int(i) for i in indices[0][active]], atomic))


def test_a_watcher_sees_reads_and_writes():
    def copy(x, y):
        y.store((tile.program_id(0) * 2,), x.tile((tile.program_id(0) * 4,), (4,)))

    program = tile.build("copy", {"x": LINE, "y": LINE}, copy)
    seen = Seen()
    tile.evaluate(program, [random(6), np.zeros(8, np.float32)], (2,), seen)
    line = copy.__code__.co_firstlineno + 1
    assert [(inside, outside) for _, inside, outside in seen.reads] == [(True, False), (True, True)]
    assert all(where.startswith(f"{__file__}:{line}:") for where, *_ in seen.reads)
    assert seen.writes == [((0, 0, 0), [0, 1, 2, 3], ""), ((1, 0, 0), [2, 3, 4, 5], "")]


def test_text_and_program_are_one():
    program = tile.build("softmax", {"x": MATRIX, "y": MATRIX}, softmax, grid=("x_0",))
    again = tile.parse(program.text)
    assert again.text == program.text and [p.name for p in again.parameters] == ["x", "y"]


def test_code_of_a_product_is_loops():
    """A step of 64x64x32 is a block of sums in registers that goes over k, wherever it is in the tile."""
    def product(a, b, c):
        def step(k, s):
            return tile.dot(a.tile((0, k), (64, 32), 0), b.tile((k, 0), (32, 64), 0), s)

        c.store((0, 0), tile.for_(0, a.size(1), 32, [tile.zeros((64, 64))], step)[0])

    program = tile.build("product", {"a": MATRIX, "b": MATRIX, "c": MATRIX}, product, grid=(1,))
    for chip in ("x86-64-v4", "x86-64-v3"):
        binary = tile.compile(program, "cpu", chip).binary
        assert len(binary.blob) < 8500 and dict(binary.report)["stack"] <= chip_of(get_target("cpu"), chip).l2_bytes / 2


def test_too_much_memory_and_arrays_backwards_are_refused():
    def sorted_(x):
        x.store((0, 0), tile.sort(x.tile((0, 0), (1024, 1024), 0)))

    with pytest.raises(UserError, match="its tiles need .* bytes of a core's stack"):
        wide = tile.BufferOf("f64", (None, None))
        tile.compile(tile.build("sorted", {"x": wide}, sorted_, grid=(1,)), "cpu", "x86-64-v3")

    def negated(x):
        x.store((0,), -x.tile((0,), (8,), 0))

    program = tile.build("negated", {"x": tile.BufferOf("f32", (None,), (None,))}, negated, grid=(1,))
    with pytest.raises(UserError, match="x_stride_0 is -1: code reads no array backwards"):
        tile.run(program, [random(8)[::-1]])


def test_the_interpreter_refuses_elements_that_share_memory():
    """Windows over a row, a row given as many: memory of their sizes has no room for what they span."""
    def doubled(x, y):
        y.store((0, 0), x.tile((0, 0), (4, 8), 0) * 2.0)

    rows = tile.BufferOf("f32", (None, None), (None, 1))
    program = tile.build("doubled", {"x": rows, "y": MATRIX}, doubled, grid=(1,))
    made = tile.compile(program, "nvptx", "sm_80", emit=False)
    for x in (np.broadcast_to(random(8), (4, 8)), np.lib.stride_tricks.sliding_window_view(random(11), 8)):
        with pytest.raises(UserError, match="x has elements that share memory"):
            made.interpret([x, np.zeros((4, 8), np.float32)])
