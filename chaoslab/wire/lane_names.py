"""The names of lanes on Toxiproxy, which end with the moment until which their maker answers for them."""

from __future__ import annotations

import re

_LEASED = re.compile(r"lane\..*\.([0-9]{1,12})", re.DOTALL)


def lane(target: str, run: str, number: int, until: int) -> str:
    """The name of a lane. `until`: the end of its lease in seconds since 1970."""
    return f"lane.{target}.{run}.{number}.{until}"


def is_over(name: str, now: float) -> bool:
    """True for the name of a lane whose lease has expired. `now`: in seconds since 1970."""
    found = _LEASED.fullmatch(name)
    return found is not None and int(found[1]) < now
