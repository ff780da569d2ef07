"""Composites that ``xt-recognise`` finds, a file a family."""
