"""Builders of tile programs: index expressions, tiles' values, buffers and their accesses."""
