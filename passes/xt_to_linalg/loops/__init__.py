"""Ops that become scalar loops on memrefs, a file a family."""
