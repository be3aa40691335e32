"""Seams: where native calls become exchanges. One file per kind of call."""
