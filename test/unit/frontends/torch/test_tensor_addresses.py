"""Where a call finds its tensors, and which it cannot read there."""

from types import SimpleNamespace

import pytest
import torch

from xcc.frontends.torch import compat
from xcc.frontends.torch.tensor_call import TensorCall


def made(count, turned=None, static=()):
    executor = SimpleNamespace(own_outputs=[], copied_outputs=[])
    return TensorCall(SimpleNamespace(executor=executor, turn=None, outputs=[], inputs=[None] * count), [], turned,
                      static)


def lie(tensors):
    return [t.data_ptr() for t in tensors]


@pytest.mark.parametrize("static", [(), (0,), (0, 1, 2)])
def test_tensors_that_move_are_found(static):
    call = made(3, static=static)
    tensors = [torch.ones(4) for _ in range(3)]
    for n in (0, 1, 2, 2, 0):
        assert call.addresses(tensors) == lie(tensors) == call.addresses(tensors)
        tensors[n] = torch.ones(4)


@pytest.mark.parametrize("static", [(), (0,)])
@pytest.mark.parametrize("place", [0, 1])
def test_one_that_comes_strided_is_refused(place, static):
    call = made(2, static=static)
    dense = [torch.ones(4, 5), torch.ones(4, 5)]
    assert call.addresses(dense) == lie(dense)
    strided = list(dense)
    strided[place] = torch.ones(5, 4).t()
    assert call.addresses(strided) is None
    assert call.addresses(dense) == lie(dense)


def test_a_view_with_other_strides_at_the_same_address_is_refused():
    call, parameter, x = made(2, static=(0,)), torch.ones(3), torch.ones(4, 4)
    assert call.addresses([parameter, x]) == lie([parameter, x])
    assert call.addresses([parameter, x.t()]) is None


def test_dims_may_lie_in_another_order():
    call = made(1, {0: (0, 2, 3, 1)})
    x = torch.ones(2, 3, 4, 5)
    assert call.addresses([x]) is None
    last = x.to(memory_format=torch.channels_last)
    assert call.addresses([last]) == lie([last])


@pytest.mark.parametrize("own", [True, False])
def test_addresses_are_compared_at_the_places_asked_for(own, monkeypatch):
    if not own and compat._same_addresses is None:
        pytest.skip("this torch has no function for it")
    monkeypatch.setattr(compat, "_same_addresses", None if own else compat._same_addresses)
    a, b, c = (torch.ones(4) for _ in range(3))
    assert compat.same_addresses((a, b), lie([a, c]), [0])
    assert not compat.same_addresses((a, b), lie([a, c]), [0, 1])
    assert compat.same_addresses((a, b), [0, 0], [])
