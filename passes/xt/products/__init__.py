"""Operands of products and windows: panels of columns, other sides, borders."""
