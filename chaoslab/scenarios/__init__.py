"""Scenarios: an agent, its faults and what must hold, written down once in a file or in Python."""
