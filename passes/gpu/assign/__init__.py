"""Which layout each value of a tile program gets, for ``assign-layouts``."""
