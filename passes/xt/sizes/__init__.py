"""Symbolic dims: those taken to be equal, those that are numbers, those that GPUs count in 32 bits."""
