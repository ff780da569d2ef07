"""Elementary functions as lane code, for ``expand-math``."""
