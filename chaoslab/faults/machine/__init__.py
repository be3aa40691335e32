"""Faults of the files and the commands of the agent's own machine."""
