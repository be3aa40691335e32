"""Durations as texts for people."""

from __future__ import annotations

SMALL_S = 0.01


def duration(seconds: float, digits: int = 3) -> str:
    """The duration as text: 0.497 s, or 0.2 ms if it is small; 0 s for none."""
    if seconds == 0:
        return "0 s"
    return f"{seconds * 1000:.1f} ms" if abs(seconds) < SMALL_S else f"{seconds:.{digits}f} s"


def span(seconds: float) -> str:
    """The duration as text: 12 s, 3 min 20 s, 2 h 5 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
