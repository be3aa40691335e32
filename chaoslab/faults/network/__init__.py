"""Faults of the network: toxics on the connection of a call."""
