"""Names of attributes by which passes of several levels tell each other something of a function or an op."""

from __future__ import annotations

INSIDE = "xcc.inside"
"""Of a vector.gather: all of its indices lie in memory, those of lanes that are off, too, and these are few: a window's
lanes in the padding, say."""
LOGARITHMS = "xcc.logarithms"
"""Of a vector.scan that adds: its elements, and what it gives, are logarithms of what is added."""
MACHINE = "xcc.machine"
"""Of a function: its vectors are of a machine's width already."""
MAY_ALIAS = "xcc.may_alias"
"""Of a kernel: buffers may be one memory."""
PART = "xcc.part"
"""Of a function: it is a part of a kernel whose parts share a launch (``split-beside``, ``join-grids``)."""
PIECES = "xcc.pieces"
"""Of an arith.select between elements of several tensors: each is read inside of it where it is chosen, so that
tiles that are one's need no clamps, where bounds are not known either."""
RESIDENT = "xcc.resident"
"""Of a GPU's kernel: the warps of a core's that its registers are to suffice for."""
REVERSE = "xcc.reverse"
"""Of a vector.scan: it runs from the end."""
