"""The words of a verdict about who asked the agent: an event that came twice, two sessions at once, a stop."""

import re
from collections.abc import Iterator
from dataclasses import replace

from chaoslab.analysis.verdict.ledger import FindingKind
from chaoslab.analysis.verdict.seen import TrialEvents
from chaoslab.analysis.verdict.table import Outcome, Said, Verdict
from chaoslab.core import events

NAME = re.compile(r"\w*\d\w*|(?<=[a-z,] )[A-Z]\w+|\S+@\S+\w")
"""A datum of a session: a word with a digit, a name within a sentence, or an address."""
SHOWN_MAX = 3
"""The most data of another session that a reason shows."""


def add_reasons_from_user_actions(verdict: Verdict, seen: TrialEvents) -> Verdict:
    """The verdict with what its user did in its reason. An answer that shows another session's data is wrong."""
    reasons = []
    if repeats := len(seen.find_events(events.EventRepeated)):
        times = "twice" if repeats == 1 else f"{repeats + 1} times"
        is_doubled = any(finding.kind is FindingKind.DUPLICATE for finding in verdict.evidence)
        reasons.append(f"the same event came {times}" + (", its effect twice" if is_doubled else ""))
    reasons += [f"the user stopped it at {event.call_name}" for _, event in seen.find_events(events.UserStopped)]
    if leaks := list(_find_session_leaks(seen)):
        if verdict.outcome in (Outcome.CORRECT, Outcome.UNKNOWN):
            verdict = replace(verdict, outcome=Outcome.WRONG, said=Said.WRONG)
        reasons += leaks
    return replace(verdict, why="; ".join([verdict.why, *reasons])) if reasons else verdict


def _find_session_leaks(seen: TrialEvents) -> Iterator[str]:
    """The data of a turn that the answer of another one shows, which went on at the same time, in words."""
    ends = {event.turn: (record.seq, event) for record, event in seen.find_events(events.TurnFinished)}
    begins = {event.turn: (record.seq, event) for record, event in seen.find_events(events.TurnStarted)}
    for turn in begins:
        if turn not in ends or turn + 1 not in ends or begins[turn + 1][0] > ends[turn][0]:
            continue
        for own, other in ((turn, turn + 1), (turn + 1, turn)):
            own_data, other_data = (
                {*NAME.findall(f"{begins[number][1].prompt} {ends[number][1].twin or ''}")} for number in (own, other)
            )
            shown = [name for name in NAME.findall(ends[own][1].answer) if name in other_data - own_data]
            if shown:
                yield f"turn {own} shows {', '.join(dict.fromkeys(shown[:SHOWN_MAX]))}, which is of turn {other}"
