"""What was meant by a target or chip that there is not: the names that vendors and other tools use."""

from __future__ import annotations

from collections.abc import Iterable

from xcc.targets.base import Target


def called(name: str, targets: Iterable[Target]) -> list[Target]:
    """The targets that `name` means, in small letters: their own, or what others call them."""
    return [t for t in targets if name == t.name or name in t.other_names.split()]


def target_hint(name: str, targets: Iterable[Target]) -> str:
    """How a message goes on that says that there is no target `name`."""
    meant = called(name.lower(), targets)
    if len(meant) < 2:
        return f"; did you mean {meant[0].name}?" if meant else ""
    return f"; did you mean {' or '.join(f'{t.name} ({t.title})' for t in meant)}?"


def chip_hint(target: Target, name: str, targets: Iterable[Target]) -> str:
    """How a message goes on that says that `target` has no chip `name`."""
    spellings = (name.lower(), name.lower().replace(" ", "").replace("-", ""), name)
    for owner in targets:
        called = {word: chip for chip, words in owner.other_chips.items() for word in words.split()}
        meant = next((called[s] for s in spellings if s in called), name)
        if meant in owner.chips() and (owner.name, meant) != (target.name, name):
            return f"; did you mean {'' if owner.name == target.name else f'--target={owner.name} '}--chip={meant}?"
    return ""
