"""A trial's log in memory: it says what was true when it was noted, whoever reads it, wherever and whenever."""

import pickle
from datetime import UTC, datetime
from typing import Any

from chaoslab.base.identity import Requests, TrialId
from chaoslab.core import events
from chaoslab.core.events import Event
from chaoslab.record.trial_log import TrialLog

BEGAN = datetime(2026, 6, 1, 9, tzinfo=UTC)


class Said:
    """Counts how often it is told and made again."""

    told_times = made_again = 0

    def make_phase_event(self, part: str, requests: Requests, t: float) -> Event:  # noqa: ARG002
        Said.told_times += 1
        return events.LabWarning(message=f"{part} of {requests.trial.key}")

    def __setstate__(self, state: Any) -> None:
        Said.made_again += 1


def noted() -> TrialLog:
    book, said = TrialLog(TrialId("run", 1, 3), began=BEGAN), Said()
    vars(said)["anything"] = True
    book.note_event(events.LabWarning(message="first"))
    book.note_call_phase(said, "begin")
    book.note_call_phase(said, "end")
    return book


def words(book: TrialLog) -> list[tuple[int, str | None, str]]:
    return [(r.seq, r.trial, r.event.message) for r in book.history.records if isinstance(r.event, events.LabWarning)]


EXPECTED = [(1, "p1.r3", "first"), (2, "p1.r3", "begin of p1.r3"), (3, "p1.r3", "end of p1.r3")]


def test_what_is_noted_is_told_in_order_and_once() -> None:
    book, before = noted(), Said.told_times
    assert words(book) == words(book) == EXPECTED
    assert Said.told_times == before + 2


def test_what_another_process_noted_is_made_again_when_somebody_reads_it() -> None:
    book, before = noted(), (Said.told_times, Said.made_again)
    sent = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(book))))  # handed on unread by a third one
    assert (Said.told_times, Said.made_again) == before
    assert words(sent) == EXPECTED
    assert (Said.told_times, Said.made_again) == (before[0] + 2, before[1] + 1)
    assert [r.ts for r in sent.history.records] == [r.ts for r in book.history.records]


def test_what_was_read_here_can_be_read_there() -> None:
    book = noted()
    assert words(book) == EXPECTED
    assert pickle.loads(pickle.dumps(book)).history.records == book.history.records
