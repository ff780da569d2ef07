"""Ops that become tile programs on GPUs."""
