"""A guard around each measure: a measure that raises is unknown, with the reason, and the others go on."""

from collections.abc import Callable
from typing import TypeVar

from chaoslab.base.boundary import let_through
from chaoslab.base.jsonable import describe_error, line

T_ = TypeVar("T_")

WHY = 140
"""The most characters of a reason."""


class Unknown(Exception):
    """A failed measure's result was asked for; the message is the reason, in one line."""


def guarded(measure: Callable[[], T_], otherwise: Callable[[str], T_]) -> T_:
    """The measure's result. If it raises, the result of `otherwise` for the reason, which is one short line."""
    try:
        return measure()
    except Unknown as error:
        return otherwise(str(error))
    except BaseException as error:  # noqa: BLE001 - a measure may be a plug-in's, and any may have a bug
        let_through(error)
        return otherwise(line(describe_error(error), WHY))
