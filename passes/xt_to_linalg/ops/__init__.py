"""Ops that become linalg on tensors, a file a family."""
