"""One thread's code of the ops of a tile program, for ``distribute``."""
