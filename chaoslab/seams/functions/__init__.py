"""The seam of Python functions."""
