"""The variables of a loop, containers among them, as the values that it carries from turn to turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xcc.frontends.kernel.joining import Undefined
from xcc.frontends.kernel.shared_names import SharedNames
from xcc.frontends.kernel.trees import leaves, paths, put_back, rebuilt, structure

__all__ = ["Variables"]


class Variables:
    """The variables of a loop, which keep their structures from turn to turn."""

    def __init__(self, values: Sequence[object], names: Sequence[str], body: Callable[..., object]) -> None:
        self._given, self._variables = list(values), list(names)
        self._shared = SharedNames(values, names, body)
        self._kinds = [structure(v) for v in values]
        self._same = [True] * len(self._kinds)      # whether a turn changes the container that it is given
        self.values = [leaf for v, s in zip(values, self._kinds, strict=True) for leaf in leaves(v, s)]
        self.names = [p for n, s in zip(names, self._kinds, strict=True) for p in paths(n, s)]

    def whole(self, given: Sequence[object]) -> list[object]:
        """The variables, of their elements."""
        return rebuilt(self._kinds, given)

    def turn(self, body: Callable[..., Sequence[object]], given: Sequence[object]) -> list[object]:
        """The elements behind a turn that begins with those of `given`."""
        before, made = self.whole(given), list[object]()
        check = self._shared.watched(before)
        behind = body(*before)
        check(behind)
        for i, (old, new) in enumerate(zip(before, behind, strict=True)):
            self._same[i] &= old is new
            made += self._leaves(i, new)
        return made

    def _leaves(self, i: int, new: object) -> list[object]:
        kind, name = self._kinds[i], self._variables[i]
        if kind is None or structure(new) == kind:
            return leaves(new, kind)
        why = f"it is a {kind.kind.__name__} before the loop, of which a turn changes how many elements it has"
        return [Undefined(name, why)] * len(paths(name, kind))

    def behind(self, given: Sequence[object]) -> list[object]:
        """The variables behind the loop, of their elements there."""
        return [put_back(old, new) if same else new
                for old, new, same in zip(self._given, self.whole(given), self._same, strict=True)]
