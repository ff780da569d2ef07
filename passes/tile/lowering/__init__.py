"""What each op of the tile dialect becomes for ``lower-tile``, a file a family."""
