"""Where a call finds its tensors, which it cannot read there, and which calls repeat the one before."""

from types import SimpleNamespace

import pytest
import torch

from xcc.frontends.torch.tensor_call import TensorCall, picked
from xcc.runtime.turn import Turn


class Executor:
    """Notes the addresses that it runs on."""

    own_outputs, copied_outputs, again = [0], [], True

    def __init__(self):
        self.ran = []

    def output_shapes(self, symbols):
        return [(symbols["n"],)]

    def run_at(self, inputs, symbols, outputs):
        self.ran.append([*inputs, *outputs])

    def repeat(self, symbols, numbers):
        def run(addresses):
            if self.again:
                self.ran.append(dict(zip(numbers, addresses, strict=True)))
            return self.again
        return run


def made(count, turned=None, static=()):
    outputs = [SimpleNamespace(dtype="f32")]
    return TensorCall(SimpleNamespace(executor=Executor(), turn=Turn(), outputs=outputs, inputs=[None] * count), [()],
                      turned, static)


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
    call, given = made(3, static=static), [torch.ones(4, 4) for _ in range(4)]
    tensors = [given[n] for n in at]
    pointers, symbols = call.addresses(tensors), {"n": 4}
    call(pointers, (4,), symbols)
    return call._executor, given, call.repeat(pointers, (4,), symbols, at)


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
        addresses = {k: moved[at[k]].data_ptr() for k in range(3) if k not in static} | {3: out[0].data_ptr()}
        assert out[0].shape == (4,) and executor.ran[-1] == addresses


def test_what_lies_in_another_way_is_no_repeat():
    executor, given, repeat = repeated((0,))
    assert repeat([given[0], given[1].t(), given[2]]) is None
    executor.again = False
    assert repeat(given) is None and len(executor.ran) == 1


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
    assert call.repeat([x.data_ptr()], (4,), symbols, [0]) is None


def test_entries_are_picked():
    values = ["a", "b", "c"]
    assert [list(picked(places)(values)) for places in ([], [2], [2, 0])] == [[], ["c"], ["c", "a"]]
