"""Faults of the context: part of what the model is given is missing."""
