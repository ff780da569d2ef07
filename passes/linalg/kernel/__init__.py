"""A kernel of stage linalg in plain Python: what it computes, over which dims, and what its ops are together."""
