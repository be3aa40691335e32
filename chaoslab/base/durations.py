"""Durations as texts for people. Only a duration of none is told as 0."""

SMALL_S = 0.01
"""The duration from which on a text is in seconds, if that shows a digit of it."""
TINY_S, LEAST_S = 1e-4, 1e-6
"""The durations below which a text is in microseconds, and below which it says no figure."""


def format_duration(seconds: float, digits: int = 3) -> str:
    """The duration as text: 0.497 s, 0.2 ms or 12 µs if it is small; 0 s for none. `digits`: of a second."""
    if seconds == 0:
        return "0 s"
    size = abs(seconds)
    if size < LEAST_S:
        return "below 1 µs"
    if size < TINY_S:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1000:.1f} ms" if size < max(SMALL_S, 10**-digits) else f"{seconds:.{digits}f} s"


def format_range(low: float, high: float, digits: int = 2) -> str:
    """An interval of durations as text: 0.37–1.81 s, 5 µs–2.0 ms. A unit that both ends have is said once."""
    first, last = format_duration(low, digits), format_duration(high, digits)
    number, _, unit = first.rpartition(" ")
    if low == 0:
        return f"0–{last}"
    return f"{number if number != 'below 1' and last.endswith(f' {unit}') else first}–{last}"


def format_difference(seconds: float, digits: int = 2) -> str:
    """A difference of durations as text: +0.62 s, -3.0 ms. Below a microsecond, which logs do not tell, it is none."""
    sign = "-" if seconds < 0 else "+"
    return f"{sign}{format_duration(abs(seconds), digits)}" if abs(seconds) >= LEAST_S else f"+{0:.{digits}f} s"


def format_long_duration(seconds: float) -> str:
    """The duration as text: 0.3 s, 12 s, 3 min 20 s, 2 h 5 min."""
    total_s = round(seconds)
    if total_s < 1:
        return format_duration(seconds, 1)
    if total_s < 60:
        return f"{total_s} s"
    if total_s < 3600:
        return f"{total_s // 60} min {total_s % 60} s"
    return f"{total_s // 3600} h {total_s % 3600 // 60} min"
