"""The factors by which a Fourier transform is made of transforms of a few numbers."""

from __future__ import annotations

from functools import cache

MOVED = 6.0         # operations in the time in which a number is loaded and stored
TURNED = 6.0        # that multiply a number by a root of unity
OPERATIONS = {2: 4, 3: 16, 4: 16, 5: 44, 6: 40, 7: 84, 8: 60, 9: 96, 10: 108, 11: 220, 13: 312}
"""Of a transform of so many numbers, real and imaginary parts."""


@cache
def butterfly_factors(n: int) -> tuple[int, ...]:
    """Of a product of primes up to 13, those that take the fewest operations; () for other numbers, and for 1."""
    found = [(d, *rest) for d in OPERATIONS if n % d == 0
             for rest in [butterfly_factors(n // d)] if rest or n == d]
    return min(found, key=_cost, default=())


def _cost(factors: tuple[int, ...]) -> float:
    """Operations for each number."""
    return sum(MOVED + (OPERATIONS[d] + TURNED * (d - 1)) / d for d in factors)
