"""Seams turn native calls into exchanges. One file per kind of call."""
