"""Faults of the context: the model gets only a part of it."""
