"""Compilation in other processes: the nursery, forks that are watched, workers for kernels."""
