"""Quantised values, bytes between layers, and what is decoded from narrow weights."""
