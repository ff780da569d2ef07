"""Liveness and placement of temporary buffers."""

import random
import time

from xcc.runtime.arena import ALIGNMENT, ArenaPlanner, lifetimes
from xcc.runtime.program import BindSymbol, Buffer, Copy, For, Launch, Program, While
from xcc.symbolic import parse


def chain(n, shape=(16,)):
    """n temps, each made from the one before."""
    buffers = (Buffer("input", shape, "f32", "x"), Buffer("output", shape, "f32", "y"),
               *(Buffer("temp", shape, "f32") for _ in range(n)))
    order = [0, *range(2, n + 2), 1]
    body = tuple(Launch("k", pair, ()) for pair in zip(order, order[1:], strict=False))
    return Program(buffers, body, (0,), (1,), ("n",))


def assert_valid(program, plan):
    lives = lifetimes(program)
    assert set(plan.offsets) == set(lives)
    env = {"n": 7}
    import xcc.symbolic as s
    spans = [(*lives[b], o, o + s.evaluate(program.nbytes(b), env)) for b, o in plan.offsets.items()]
    for i, (f1, l1, a1, e1) in enumerate(spans):
        assert a1 % ALIGNMENT == 0
        assert e1 <= plan.size
        for f2, l2, a2, e2 in spans[:i]:
            together = f1 <= l2 and f2 <= l1
            assert not (together and a1 < e2 and a2 < e1)


def test_chain_needs_two_buffers():
    p = chain(10)
    plan = ArenaPlanner(p).plan()
    assert plan.size == 2 * 64
    assert_valid(p, plan)


def test_symbolic_plans_are_cached():
    planner = ArenaPlanner(chain(4, (parse("n"), 33)))
    assert not planner.is_static
    small, large = planner.plan({"n": 1}), planner.plan({"n": 100})
    assert small.size < large.size
    assert planner.plan({"n": 1}) is small


def test_loops_extend_lifetimes():
    b = (Buffer("temp", (4,), "f32"), Buffer("temp", (4,), "f32"), Buffer("temp", (4,), "f32"),
         Buffer("temp", (4,), "f32"), Buffer("temp", (), "i1"))
    loop = For("i", 3, (Launch("k", (0, 1), ()), Launch("k", (1, 2), ()), Launch("k", (2, 3), ())))
    lives = lifetimes(Program(b, (Launch("k", (0,), ()), loop, Launch("k", (3,), ())), (), ()))
    assert lives == {0: (1, 4), 1: (2, 3), 2: (3, 4), 3: (2, 5)}
    loop = While((Launch("k", (0, 4), ()),), 4, (Launch("k", (0, 1), ()), Copy(1, 0)))
    lives = lifetimes(Program(b, (Launch("k", (0,), ()), loop, Launch("k", (0,), ())), (), ()))
    assert lives == {0: (1, 6), 4: (2, 3), 1: (4, 5)}


def test_nested_loops():
    b = tuple(Buffer("temp", (4,), "f32") for _ in range(3))
    inner = For("j", 2, (Launch("k", (1,), ()), Launch("k", (2,), ()), Launch("k", (1,), ())))
    outer = For("i", 2, (Launch("k", (1,), ()), inner, Launch("k", (0,), ())))
    lives = lifetimes(Program(b, (outer, Launch("k", (0,), ())), (), ()))
    assert lives == {0: (1, 6), 1: (1, 4), 2: (3, 3)}


def test_aliases_keep_their_base_alive():
    b = (Buffer("temp", (4, 4), "f32"), Buffer("alias", (16,), "f32", base=0), Buffer("temp", (4,), "f32"))
    p = Program(b, (Launch("k", (0,), ()), Launch("k", (2,), ()), Launch("k", (1,), ())), (), ())
    assert lifetimes(p) == {0: (1, 3), 2: (2, 2)}


def test_data_dependent_sizes_get_their_limit():
    b = (Buffer("temp", (1,), "i64"), Buffer("temp", (parse("k"), 2), "f32"))
    p = Program(b, (BindSymbol("k", 0, 0, parse("10*n")), Launch("k", (1,), (parse("k"),))), (), (), ("n",))
    assert ArenaPlanner(p).plan({"n": 8}).size >= 640


def random_program(n, seed):
    rng = random.Random(seed)
    shapes = [(parse("n"), rng.randrange(1, 600)) for _ in range(40)]
    buffers = tuple(Buffer("temp", rng.choice(shapes), rng.choice(["f32", "f16"])) for _ in range(n))
    body = tuple(Launch("k", tuple({max(0, i - rng.randrange(1, 8)), i}), (parse("n"),)) for i in range(n))
    return Program(buffers, body, (), (), ("n",))


def test_random_programs():
    for seed in range(20):
        p = random_program(60, seed)
        assert_valid(p, ArenaPlanner(p).plan({"n": 7}))


def test_planning_500_buffers_is_fast():
    planner = ArenaPlanner(random_program(500, 1))
    times = []
    for n in range(1, 20):
        start = time.process_time()
        planner.plan({"n": n})
        times.append(time.process_time() - start)
    assert min(times) < 0.005


def test_what_is_read_of_empty_buffers_lies_at_the_ends():
    """As much as the largest would have, were its sizes of 0 ones of 1; none where nothing is empty."""
    n, m = parse("n"), parse("m")
    buffers = (Buffer("input", (n, 100, m), "f32", "x"), Buffer("temp", (n, 3), "f32"), Buffer("temp", (50,), "f32"),
               Buffer("alias", (n, m, 10), "f64", base=0))
    planner = ArenaPlanner(Program(buffers, (Launch("k", (0, 1, 2), ()),), (0,), (), ("n", "m")))
    for sizes, void in (((2, 2), 0), ((0, 2), 832), ((0, 0), 448), ((0, 20), 8000), ((2, 0), 832)):
        plan = planner.plan(dict(zip("nm", sizes, strict=True)))
        assert plan.void == void
        assert plan.size == 256 + 64 + 2 * void and min(plan.offsets.values()) == void
