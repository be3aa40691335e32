"""Faults of a streamed reply."""
