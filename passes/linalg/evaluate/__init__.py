"""A tile of a kernel's value, computed on demand: bodies, reductions, and what is kept or fetched for them."""
