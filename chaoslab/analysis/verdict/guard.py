"""A guard around each measure: a measure that raises is unknown, with the reason, and the others go on. `MeasureResult`
is the result of one measure of a run, or the reason for its failure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from chaoslab.base.boundary import reraise_unless_foreign
from chaoslab.base.jsonable import describe_error, to_one_line

T_ = TypeVar("T_")

REASON_MAX = 140
"""The most characters of a reason."""


class Unknown(Exception):
    """A failed measure's result was asked for; the message is the reason, in one line."""


def run_guarded(measure: Callable[[], T_], otherwise: Callable[[str], T_]) -> T_:
    """The measure's result. If it raises, the result of `otherwise` for the reason, which is one short line."""
    try:
        return measure()
    except Unknown as error:
        return otherwise(str(error))
    except BaseException as error:  # noqa: BLE001 - a measure may be a plug-in's, and any may have a bug
        reraise_unless_foreign(error)
        return otherwise(to_one_line(describe_error(error), REASON_MAX))


@dataclass(frozen=True)
class MeasureResult(Generic[T_]):
    """One measure of a run. `unknown`: one line with the reason if the measure failed, else empty. A measure without
    data has a value that expresses it (None, an empty list, n of 0); it is not unknown."""

    _found: T_ | None = None
    unknown: str = ""

    @classmethod
    def from_measure(cls, measure: Callable[[], T_]) -> MeasureResult[T_]:
        """The result of the measure; unknown if it raises."""
        return run_guarded(lambda: MeasureResult(measure()), lambda reason: MeasureResult(None, reason))

    @property
    def value(self) -> T_:
        """The result of the measure. Raises Unknown: it failed."""
        if self.unknown:
            raise Unknown(self.unknown)
        return cast(T_, self._found)
