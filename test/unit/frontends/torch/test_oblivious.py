"""Traces in which all sizes are alike."""

import io
import sys
import threading
from types import SimpleNamespace

import pytest
import sympy
from torch.fx.experimental import _config
from torch.utils._sympy import solve
from torch.utils._sympy.functions import Max, Min
from torch.utils._sympy.numbers import int_oo
from torch.utils._sympy.value_ranges import ValueRanges

from xcc.frontends.torch.kernel_choice import of_kernels
from xcc.frontends.torch.long_traces import told_when_long
from xcc.frontends.torch.oblivious import _clamped
from xcc.frontends.torch.size_order import _least, decided, undivided


class ShapeEnv:
    def __init__(self):
        self.entered = 0

    def suppress_guards(self):
        return self

    def __enter__(self):
        self.entered += 1

    def __exit__(self, *_):
        return False


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("oblivious", [False, True])
def test_kernels_put_no_guards_however_their_arguments_are_given(named, oblivious):
    env = ShapeEnv()
    x = SimpleNamespace(fake_mode=SimpleNamespace(shape_env=env))
    call = of_kernels(lambda flag, input: (flag, input))
    with _config.patch(backed_size_oblivious=oblivious):
        assert (call(flag=3, input=x) if named else call(3, x)) == (3, x)
    assert env.entered == oblivious


@pytest.mark.parametrize(("size", "index", "place"), [(5, 2, 2), (1, 2, 1), (0, 1, 0), (5, -2, 3), (1, -2, 0)])
def test_places_that_torch_leaves_open_are_those_of_python(size, index, place):
    """2.11 does so with all that depends on a size."""
    with _config.patch(backed_size_oblivious=True):
        assert _clamped(lambda _size, _index: None)(size, index) == place
        assert _clamped(lambda _size, _index: 7)(size, index) == 7
    assert _clamped(lambda _size, _index: None)(size, index) is None


S, T, OPEN = sympy.symbols("s t open", integer=True, nonnegative=True)
POSITIVE = sympy.Symbol("p", integer=True, positive=True)
RANGES = SimpleNamespace(var_to_range={S: ValueRanges(0, int_oo), T: ValueRanges(0, 4)})


@pytest.mark.parametrize(("condition", "answer"), [
    (sympy.Ge(S - Min(1, S), 0), True),                             # the length of torch.diff
    (sympy.Lt(S - Min(1, S), 0), False),
    (sympy.Ge(S + Min(1, S) - Min(1, S + Min(1, S)), 0), True),     # and behind `prepend`
    (sympy.Gt(Max(T, 2) + S, S + 1), True),
    (sympy.Le(Min(4, S), S), True),
    (sympy.Ge(Max(T, 2) - Min(S, 2), 0), True),
    (sympy.Ne(Max(T, 2) - Min(S, 2), -1), True),
    (sympy.Eq(Max(S, 3), Min(T, 2)), False),
    (sympy.Ge(Max(S * Min(4, S), 1) - S * Min(4, S), 0), True),     # the argument takes the term away that has no bound
    (sympy.Ge(Max(S, 1) - S * Min(4, S), 0), None),
    (sympy.And(sympy.Ge(S - Min(1, S), 0), sympy.Le(S - Min(1, S), S)), True),
    (sympy.And(sympy.Ge(S - Min(1, S), 0), sympy.Gt(S, 3)), None),
    (sympy.Or(sympy.Gt(S, 3), sympy.Ge(S - Min(1, S), 0)), True),
    (sympy.Ge(S - Min(2, T), 0), None),                             # for 0 and 1 it is not
    (sympy.Eq(S - Min(1, S), 0), None),
    (sympy.Ge(S, 0), None),                                         # torch finds this
    (sympy.Ge(S - Min(OPEN, S), 0), None),                          # of no known range
])
def test_what_holds_for_all_sizes(condition, answer):
    assert decided(RANGES, condition) is answer


@pytest.mark.parametrize(("relation", "found"), [
    (sympy.Le(S * T, 0, evaluate=False), None),         # of t = 0 it says nothing
    (sympy.Gt(3 * S * (T + 1) + 2, 8), (sympy.Gt, 2 / (T + 1))), (sympy.Le(3 * S, 6), (sympy.Le, 2)),
    (sympy.Le(S * POSITIVE, POSITIVE), (sympy.Le, 1))])
def test_relations_are_not_divided_by_what_may_be_0(relation, found, monkeypatch):
    monkeypatch.setattr(solve, "_try_isolate_lhs", undivided(solve._try_isolate_lhs))
    with _config.patch(backed_size_oblivious=True):
        solved = solve.try_solve(relation, S)
    assert (solved and (type(solved[0]), solved[1])) == found


def test_hopeless_questions_are_left_at_once():
    """How much memory windows of a slice span: products of which nothing takes another away. Each least or largest
    in them doubled the work."""
    length = Max(0, S + T - 1) - Max(0, S + T - 25)
    rest = length - Min(16, length)
    _least.cache_clear()
    assert decided(RANGES, 128 * S * rest > 64 * (2 * S - 1) * Max(1, rest) + 64 * rest) is None
    assert _least.cache_info().misses == 2


def test_the_last_of_some_elements_is_one():
    """The length of ``x[-1:]``: of none it is 0."""
    last = sympy.Eq(S - Max(S - 1, 0), 1)
    assert decided(RANGES, last) is None
    assert decided(RANGES, last, {S: ValueRanges(1, int_oo)}) is True
    assert decided(RANGES, sympy.Not(last), {S: ValueRanges(1, int_oo)}) is False


def test_what_takes_long_is_told_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        written = threading.Event()

        def isatty(self) -> bool:
            return True

        def flush(self) -> None:
            self.written.set()

    for terminal, lines in ((Terminal(), 1), (io.StringIO(), 0)):
        monkeypatch.setattr(sys, "stderr", terminal)
        with told_when_long(0):
            assert not lines or Terminal.written.wait(60)
        assert terminal.getvalue().count("quicker after torch._dynamo.mark_static(x, dim)") == lines
