"""Traces in which all sizes are alike."""

from types import SimpleNamespace

import pytest
from torch.fx.experimental import _config

from xcc.frontends.torch.oblivious import _clamped, _of_kernels


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
    call = _of_kernels(lambda flag, input: (flag, input))
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
