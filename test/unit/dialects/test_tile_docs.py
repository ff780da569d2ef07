"""The reference of the tile ops is the dialect's, and every op says what it is and means."""

from pathlib import Path

import pytest

from xcc.dialects import tile
from xcc.tools import docs_tile

ROOT = Path(__file__).parents[3]


def test_reference_is_up_to_date():
    assert (ROOT / "docs" / "tile-ops.md").read_text() == docs_tile.reference()


@pytest.mark.parametrize("name", sorted(tile.OPS))
def test_every_op_is_complete(name):
    cls = tile.OPS[name]
    assert cls.__doc__ and cls.infer is not tile.TileOp.infer
    assert name == "yield" or cls.evaluate is not tile.TileOp.evaluate
    assert (cls.places is not tile.TileOp.places) == (name in ("load", "store", "gather", "scatter", "atomic",
                                                                              "compare_swap"))
