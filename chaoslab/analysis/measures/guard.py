"""A guard around each measure: one that raises is unknown, with the reason, and takes no other with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from chaoslab.base.jsonable import describe_error, line

T_ = TypeVar("T_")

WHY = 140
"""Characters of a reason."""


class Unknown(Exception):
    """A measure was asked for that has failed; says why, in one line."""


def guarded(measure: Callable[[], T_], otherwise: Callable[[str], T_]) -> T_:
    """What the measure gives; where it raises, what `otherwise` makes of the reason, which is one short line."""
    try:
        return measure()
    except Unknown as error:
        return otherwise(str(error))
    except Exception as error:  # noqa: BLE001 - a measure may be a plug-in's, and any may have a bug
        return otherwise(line(describe_error(error), WHY))
