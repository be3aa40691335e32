"""Faults of a model: what it answers is not what it should have answered."""
