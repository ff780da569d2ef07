"""The loops around the tiles of a kernel's results."""
