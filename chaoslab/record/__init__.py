"""Writes a run's logs and reads them."""
