"""Faults of the network: what a toxic does to the connection of a call."""
