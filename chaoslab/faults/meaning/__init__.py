"""Faults of meaning: an answer that is well-formed and wrong."""
