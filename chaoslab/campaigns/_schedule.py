"""The moments at which the rounds of a campaign begin."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from chaoslab.campaigns.load import moment

if TYPE_CHECKING:
    from chaoslab.campaigns._spec import CampaignSpec


def following(spec: CampaignSpec, number: int, last: datetime | None, now: datetime) -> datetime | None:
    """The moment of the round with this number, from 1; None if there is none. `last`: the beginning of the one before
    it. A moment that has passed meanwhile is not made up for."""
    if spec.rounds is not None and number > spec.rounds:
        return None
    if spec.at:
        return next((each for each in sorted(map(moment, spec.at)) if each >= now), None)
    if spec.cron:
        from croniter import croniter

        found: datetime = croniter(spec.cron, now).get_next(datetime)
        return found
    if last is None:
        return now
    if spec.every is None:
        return None
    return max(now, last + timedelta(seconds=spec.every))
