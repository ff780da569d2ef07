"""Which block the positions of a tile are, for ``form-blocks``."""
