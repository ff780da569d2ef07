"""Block-level vectors as machine vectors, for ``unroll-vectors``: the walk, its tiles, and the handlers of ops."""
