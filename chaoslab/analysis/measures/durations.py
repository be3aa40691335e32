"""Durations as texts for people."""

from __future__ import annotations

SMALL_S, TINY_S, LEAST_S = 0.01, 0.000_05, 0.000_001
"""The fewest seconds that are told in seconds, in milliseconds with one digit, and in whole microseconds."""


def duration(seconds: float, digits: int = 3) -> str:
    """The duration as text: 0.497 s, or 0.2 ms or 12 µs if it is small; 0 s for none, and for nothing else."""
    if seconds == 0:
        return "0 s"
    size = abs(seconds)
    if size < LEAST_S:
        return "below 1 µs"
    if size < TINY_S:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1000:.1f} ms" if size < SMALL_S else f"{seconds:.{digits}f} s"


def span(seconds: float) -> str:
    """The duration as text: 12 s, 3 min 20 s, 2 h 5 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
