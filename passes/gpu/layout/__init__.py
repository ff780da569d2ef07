"""Layouts: which thread and register holds which element of tiles and of matrix instructions; how ops carry them."""
