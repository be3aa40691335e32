"""Faults of the budget: tokens, dollars, calls or time have run out."""
