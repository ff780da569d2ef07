"""Where a call finds its tensors, which it cannot read there, and which calls repeat the one before."""

import gc
import weakref
from types import SimpleNamespace

import pytest
import torch

from xcc.frontends.torch import known_addresses, repeat_code
from xcc.frontends.torch.tensor_call import TensorCall, picked
from xcc.runtime.cpu import NativeCall
from xcc.runtime.turn import Turn


class Executor:
    """Of a CPU, with `count` inputs and an output, which come behind another buffer. Notes the addresses of runs."""

    own_outputs, copied_outputs = [0], []

    def __init__(self, count):
        self.ran, self.pointers, self.refused = [], {}, []
        self.outside = [*range(1, count + 2)]
        self.memory = SimpleNamespace(ready_for=None, placed=[])
        self.memory.plan, self.memory.place = lambda symbols: symbols, self.memory.placed.append

    def output_shapes(self, symbols):
        return [(symbols["n"],)]

    def run_at(self, inputs, symbols, outputs):
        self.memory.ready_for = symbols
        self.pointers |= zip(self.outside, [*inputs, *outputs], strict=True)
        self.main(self.pointers, None)

    def main(self, pointers, values):
        self.ran.append([pointers[b] for b in self.outside])
        return 0

    def repeat(self, symbols):
        return NativeCall(self.pointers, None, self.main, self.refused.append)


def made(count, turned=None, static=(), at=None):
    outputs = [SimpleNamespace(dtype="f32")]
    return TensorCall(SimpleNamespace(executor=Executor(count), turn=Turn(), outputs=outputs, inputs=[None] * count),
                      [()], turned, static, at)


def lie(tensors):
    return [t.data_ptr() for t in tensors]


def test_one_that_comes_strided_is_refused():
    call, dense = made(2), [torch.ones(4, 5), torch.ones(4, 5)]
    assert call.addresses(dense) == lie(dense)
    for place in (0, 1):
        strided = list(dense)
        strided[place] = torch.ones(5, 4).t()
        assert call.addresses(strided) is None


def test_dims_may_lie_in_another_order():
    call = made(1, {0: (0, 2, 3, 1)})
    x = torch.ones(2, 3, 4, 5)
    assert call.addresses([x]) is None
    last = x.to(memory_format=torch.channels_last)
    assert call.addresses([last]) == lie([last])


def repeated(static, at=(0, 1, 2)):
    """A call of tensors that lie at the places `at` among more, and what repeats it."""
    call, given = made(3, static=static, at=at), [torch.ones(4, 4) for _ in range(4)]
    tensors = [given[n] for n in at]
    pointers, symbols = call.addresses(tensors), {"n": 4}
    call(pointers, (4,), symbols)
    return call._executor, given, call.repeat(pointers, (4,), symbols)


@pytest.mark.parametrize("static", [(), (1,), (0, 2), (0, 1, 2)])
def test_a_repeat_follows_what_moves(static):
    at = (3, 1, 0)
    executor, given, repeat = repeated(static, at)
    for n in (0, 1, 2):
        moved = list(given)
        moved[at[n]] = torch.ones(4, 4)
        before, out = len(executor.ran), repeat(moved)
        if n in static:
            assert out is None and len(executor.ran) == before
            continue
        assert out[0].shape == (4,)
        assert executor.ran[before:] == [[moved[k].data_ptr() for k in at] + [out[0].data_ptr()]]


def many(count=11):
    """Of a call with so many inputs, of which all but the first are static: these, and what repeats it."""
    call, given = made(count, static=range(1, count)), [torch.ones(4, 4), *(
        torch.nn.Parameter(torch.ones(4, 4)) for _ in range(count - 1))]
    pointers, symbols = call.addresses(given), {"n": 4}
    call(pointers, (4,), symbols)
    return given, call.repeat(pointers, (4,), symbols)


@pytest.mark.parametrize("at_once", [True, False])
def test_many_parameters_are_compared(monkeypatch, at_once):
    if not at_once:
        monkeypatch.setattr(repeat_code, "compares", lambda: None)
    given, repeat = many()
    assert repeat([torch.ones(4, 4), *given[1:]]) is not None
    for n in (1, 10):
        assert repeat([*given[:n], torch.ones(4, 4), *given[n + 1:]]) is None
        was = given[n].data
        given[n].data = torch.ones(4, 4)        # the same object, and no new version
        assert repeat(given) is None
        given[n].data = was
        assert repeat(given) is not None


@pytest.mark.parametrize("at_once", [True, False])
def test_what_has_no_address_lies_elsewhere(monkeypatch, at_once):
    """No tensor, and one without memory: torch throws in the middle of the comparison."""
    if not at_once:
        monkeypatch.setattr(known_addresses, "compares", lambda: None)
    tensors = [torch.ones(4, 4) for _ in range(3)]
    known = known_addresses.KnownAddresses({2: tensors[2].data_ptr(), 0: tensors[0].data_ptr()})
    assert known.hold(tensors) and known.hold([tensors[0], None, tensors[2]])
    sparse = torch.ones(4, 4).to_sparse()
    for other in (tensors[1], sparse) if at_once and known_addresses.compares() else (tensors[1],):
        assert not known.hold([tensors[0], tensors[1], other])
        assert not known.hold([other, tensors[1], tensors[2]])
    assert known.hold(tensors)


def test_what_lies_in_another_way_is_no_repeat():
    executor, given, repeat = repeated((0,))
    assert repeat([given[0], given[1].t(), given[2]]) is None and len(executor.ran) == 1
    assert repeat(given) is not None


def test_dims_in_another_order_are_those_of_a_repeat():
    call, last = made(1, {0: (0, 2, 3, 1)}), torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last)
    pointers, symbols = [last.data_ptr()], {"n": 4}
    call(pointers, (4,), symbols)
    repeat = call.repeat(pointers, (4,), symbols)
    assert repeat([last.clone()]) is not None and repeat([last.contiguous()]) is None


def test_memory_is_placed_where_other_sizes_came_between():
    executor, given, repeat = repeated((0,))
    repeat(given)
    assert not executor.memory.placed
    executor.memory.ready_for = {}
    repeat(given)
    assert executor.memory.placed == [{"n": 4}]


def test_a_status_is_refused():
    call, x, symbols = made(1), torch.ones(4), {"n": 4}
    call([x.data_ptr()], (4,), symbols)
    call._executor.main = lambda pointers, values: 3
    call.repeat([x.data_ptr()], (4,), symbols)([x])
    assert call._executor.refused == [3]


def test_a_parameter_whose_data_is_another_has_moved():
    executor, given, repeat = repeated((0,))
    assert repeat(given) is not None
    given[0].data = torch.zeros(4, 4)
    assert repeat(given) is None


def test_outputs_that_are_copied_are_not_repeated():
    call = made(1)
    x, symbols = torch.ones(4), {"n": 4}
    call([x.data_ptr()], (4,), symbols)
    call._copied = [0]
    assert call.repeat([x.data_ptr()], (4,), symbols) is None


def test_what_a_repeat_holds_goes_with_it():
    executor, given, repeat = repeated((0,))
    repeat(given)
    gone = weakref.ref(executor)
    gc.disable()
    try:
        del executor, repeat
        assert gone() is None
    finally:
        gc.enable()


def test_entries_are_picked():
    values = ["a", "b", "c"]
    assert [list(picked(places)(values)) for places in ([], [2], [2, 0])] == [[], ["c"], ["c", "a"]]
