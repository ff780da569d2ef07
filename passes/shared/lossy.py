"""Products that may round their f32 factors to tf32, 10 bits of mantissa, as matrix instructions read them."""

from __future__ import annotations

LOSSY = "xcc.lossy"
"""The attribute of such a multiplication in a kernel's body, and of the tiles' contraction that is made of it."""
ROUNDED = "tf32"
"""The precision of an xt op, or of a compilation, that allows it."""
