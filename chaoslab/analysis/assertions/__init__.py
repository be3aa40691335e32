"""Assertions about a finished trial, one file each: `max_calls.py` is the assertion "max_calls"."""
