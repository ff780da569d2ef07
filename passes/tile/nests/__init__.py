"""Loops over machine vectors in place of block values, for ``retile``."""
