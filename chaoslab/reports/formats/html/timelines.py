"""The timelines of a run's trials as compact data, which the page draws when a trial is asked for."""

import json
import math
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from chaoslab.config import settings
from chaoslab.core import events
from chaoslab.record.history import Place
from chaoslab.record.lines import Record
from chaoslab.record.rulings import RulingState
from chaoslab.reports._faults import MetFault
from chaoslab.reports.contents import Contents
from chaoslab.reports.contents._rows import TrialRow
from chaoslab.reports.contents.outcomes import outcome_glyph, outcome_word
from chaoslab.reports.show import event_text
from chaoslab.reports.text import make_visible

TEXT = 260
"""The most characters of an event's text."""
BYTES_MAX = 4_000_000
"""The size of all timelines. Those of the worst trials come first, and the others are left out above it."""
EVENTS_MAX = 2000
"""The most events drawn of one trial."""
AGENT, MODEL, FAULTS, EFFECTS = "agent", "model", "faults", "effects"
PLAIN, BAD, GOOD = 0, 1, 2


@dataclass
class _Words:
    """Texts, each kept once and named by its number."""

    numbers: dict[str, int] = field(default_factory=dict)
    size: int = 0

    def of(self, text: str) -> int:
        if text not in self.numbers:
            self.numbers[text] = len(self.numbers)
            # A quote at each end and a comma.
            self.size += len(text) + 3
        return self.numbers[text]


def build_stories(contents: Contents) -> dict[str, Any]:
    """The data of the page. Each event of a trial is a list: seconds since the trial began, lane, kind, duration in
    seconds, tone, text, file, line; texts stand once, in `word_table`, and are named by their number."""
    word_table, trials, size, left_out = _Words(), [], 0, 0
    records_by_trial: dict[str | None, list[Record]] = {}
    for record in contents.history.records:
        records_by_trial.setdefault(record.trial, []).append(record)
    given_up = contents.history.given_up
    for row in contents.rows:
        size_before = word_table.size
        trial = _trial_data(contents, row, word_table)
        if size + word_table.size <= BYTES_MAX:
            drawn_events = list(_list_events(records_by_trial.get(row.trial, ()), word_table, gone=given_up))
            encoded_size = len(json.dumps(drawn_events, separators=(",", ":")))
            if size + encoded_size + word_table.size <= BYTES_MAX:
                trial["events"] = drawn_events
                size += encoded_size
        left_out += "events" not in trial
        # About what the trial's own fields take; its words are counted above.
        size += 200 + (word_table.size - size_before) // 10
        trials.append(trial)
    return {"unit": contents.unit, "words": list(word_table.numbers), "trials": trials, "leftOut": left_out}


def _trial_data(contents: Contents, row: TrialRow, word_table: _Words) -> dict[str, Any]:
    evidence = [
        [
            word_table.of(finding.kind),
            word_table.of(finding.text),
            [[word_table.of(line.file), line.line] for line in finding.lines],
        ]
        for finding in row.evidence
    ]
    return {
        "key": row.trial,
        "outcome": word_table.of(outcome_word(row.outcome)),
        "mark": word_table.of(outcome_glyph(row.outcome)),
        "look": str(row.outcome),
        "why": word_table.of(row.why),
        "ruled": word_table.of(_describe_ruling(row)),
        "prompt": word_table.of(row.prompt),
        "answer": word_table.of(row.answer),
        "evidence": evidence,
        "replay": contents.replay(row.trial),
        "show": f"{settings.program()} show {contents.quoted} --trial {row.trial}",
    }


def _describe_ruling(row: TrialRow) -> str:
    """The scenario's ruling in words; empty without one."""
    if row.ruling is None:
        return ""
    reasons_text = f": {'; '.join(row.ruling.reasons)}" if row.ruling.reasons else ""
    state = row.ruling.state
    return f"By the scenario it {state if state is not RulingState.INVALID else 'proves nothing'}{reasons_text}"


def _list_events(records: Sequence[Record], word_table: _Words, *, gone: Set[Place]) -> Iterator[list[Any]]:
    """The events of one trial in time order; a fault is one event, where it was met. `gone`: the attempts that were
    given up."""
    faults = MetFault.by_place(records)
    start_t = records[0].t if records else 0.0
    for number, record in enumerate(records[:EVENTS_MAX]):
        event = record.event
        fault = faults.get(number) if isinstance(event, events.Stage) else None
        if isinstance(event, events.Usage) or (isinstance(event, events.Stage) and fault is None):
            continue
        text = f"fault    {fault.in_words()}" if fault else event_text(event)
        if not text:
            continue
        file = word_table.of(f"{make_visible(record.writer, TEXT)}.log")
        yield [
            # To a microsecond: further digits would only make the page larger.
            round(record.t - start_t, 6),
            word_table.of(_lane_of(event)),
            word_table.of(text[:9].strip()),
            _duration_of(event),
            _tone_of(record, fault, gone),
            word_table.of(make_visible(text[9:], TEXT)),
            file,
            record.seq,
        ]


def _lane_of(event: events.Event) -> str:
    if isinstance(event, events.Stage | events.FaultUnreached):
        return FAULTS
    if isinstance(event, events.Effect):
        return EFFECTS
    if isinstance(event, events.CallStarted | events.CallFinished):
        return make_visible(event.target, 60)
    return AGENT


def _duration_of(event: events.Event) -> float:
    """Seconds before the event at which it began."""
    lasted = event.duration_s if isinstance(event, events.CallFinished | events.PromptFinished) else 0.0
    # JSON has no NaN.
    return 0.0 if math.isnan(lasted) else round(lasted, 6)


def _tone_of(record: Record, fault: MetFault | None, given_up_places: Set[Place]) -> int:
    match event := record.event:
        case events.CallFinished():
            # Given up by its agent: that is no failure of the service.
            given_up = (record.trial, event.target, event.request, event.attempt) in given_up_places
            return PLAIN if event.ok or given_up else BAD
        case events.PromptFinished():
            return GOOD if event.status == "ok" else BAD
        case events.FaultWitnessed():
            return PLAIN
        case events.LabWarning():
            return BAD
        case events.AttemptEvent() if fault is not None:
            return BAD
        case _:
            return PLAIN


def embed_json(data: dict[str, Any]) -> str:
    """The data as JSON that can stand in a script element: ASCII, without a sign that HTML reads."""
    # ASCII, so that U+2028, at which scripts once ended a line, is escaped too.
    spelt = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    # "</script>" in a tool's reply would end the element.
    return spelt.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
