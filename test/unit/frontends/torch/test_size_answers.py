"""What torch asks of sizes is answered once, until more is known of them."""

from types import SimpleNamespace

import sympy

from xcc.frontends.torch.size_answers import _Kept

S = sympy.Symbol("s", integer=True, nonnegative=True)


class Environment(SimpleNamespace):
    __hash__ = object.__hash__


def test_answers_are_kept_until_more_is_known():
    asked = []
    kept = _Kept(lambda env, expr: asked.append((env.name, expr)))
    first, second = Environment(name="a", _version_counter=0), Environment(name="b", _version_counter=0)
    for env in (first, first, second, second):
        kept(env, S)
    second._version_counter += 1
    kept(second, S)
    kept(second, S + 1)
    assert asked == [("a", S), ("b", S), ("b", S), ("b", S + 1)]
