"""Faults of a service's process: it dies, or it stops for a while, for all its clients."""
