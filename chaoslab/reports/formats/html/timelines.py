"""The timelines of a run's trials as compact data, which the page draws when a trial is asked for."""

import json
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from chaoslab.config import settings
from chaoslab.core import events
from chaoslab.record.history import Place
from chaoslab.record.lines import Record
from chaoslab.record.rulings import RulingState
from chaoslab.reports._faults import AttemptFault
from chaoslab.reports.contents import Contents
from chaoslab.reports.contents._rows import TrialRow
from chaoslab.reports.contents.outcomes import outcome_glyph, outcome_word
from chaoslab.reports.show import render_event
from chaoslab.reports.text import escape_and_shorten

TEXT = 260
"""The most characters of an event's text."""
BYTES_MAX = 4_000_000
"""The size of all timelines. Those of the worst trials come first, and the others are left out above it."""
EVENTS_MAX = 2000
"""The most events drawn of one trial."""
AGENT, MODEL, FAULTS, EFFECTS = "agent", "model", "faults", "effects"
PLAIN, BAD, GOOD = 0, 1, 2


@dataclass
class _TextTable:
    """Texts, each kept once and named by its number."""

    numbers: dict[str, int] = field(default_factory=dict)
    size: int = 0

    def get_or_add_text_index(self, text: str) -> int:
        if text not in self.numbers:
            self.numbers[text] = len(self.numbers)
            # A quote at each end and a comma.
            self.size += len(text) + 3
        return self.numbers[text]


def build_timelines(contents: Contents) -> dict[str, Any]:
    """The data of the page. Each event of a trial is a list: seconds since the trial began, lane, kind, duration in
    seconds, tone, text, file, line; texts stand once, in `word_table`, and are named by their number."""
    word_table, trials, size, left_out = _TextTable(), [], 0, 0
    records_by_trial: dict[str | None, list[Record]] = {}
    for record in contents.history.records:
        records_by_trial.setdefault(record.trial, []).append(record)
    given_up = contents.history.given_up_attempts
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
    return {"unit": contents.seconds_label, "words": list(word_table.numbers), "trials": trials, "leftOut": left_out}


def _trial_data(contents: Contents, row: TrialRow, word_table: _TextTable) -> dict[str, Any]:
    evidence = [
        [
            word_table.get_or_add_text_index(finding.kind),
            word_table.get_or_add_text_index(finding.text),
            [[word_table.get_or_add_text_index(line.file), line.line] for line in finding.lines],
        ]
        for finding in row.evidence
    ]
    return {
        "key": row.trial,
        "outcome": word_table.get_or_add_text_index(outcome_word(row.outcome)),
        "mark": word_table.get_or_add_text_index(outcome_glyph(row.outcome)),
        "look": str(row.outcome),
        "why": word_table.get_or_add_text_index(row.why),
        "ruled": word_table.get_or_add_text_index(_describe_ruling(row)),
        "prompt": word_table.get_or_add_text_index(row.prompt),
        "answer": word_table.get_or_add_text_index(row.answer),
        "evidence": evidence,
        "replay": contents.build_replay_command(row.trial),
        "show": f"{settings.get_program_name()} show {contents.shell_quoted_run} --trial {row.trial}",
    }


def _describe_ruling(row: TrialRow) -> str:
    """The scenario's ruling in words; empty without one."""
    if row.ruling is None:
        return ""
    reasons_text = f": {'; '.join(row.ruling.reasons)}" if row.ruling.reasons else ""
    state = row.ruling.state
    return f"By the scenario it {state if state is not RulingState.INVALID else 'proves nothing'}{reasons_text}"


def _list_events(records: Sequence[Record], word_table: _TextTable, *, gone: Set[Place]) -> Iterator[list[Any]]:
    """The events of one trial in time order; a fault is one event, where it was met. `gone`: the attempts that were
    given up."""
    faults = AttemptFault.index_by_record(records)
    start_t = records[0].t if records else 0.0
    for number, record in enumerate(records[:EVENTS_MAX]):
        event = record.event
        fault = faults.get(number) if isinstance(event, events.Stage) else None
        if isinstance(event, events.Usage) or (isinstance(event, events.Stage) and fault is None):
            continue
        text = f"fault    {fault.describe_in_words()}" if fault else render_event(event)
        if not text:
            continue
        file = word_table.get_or_add_text_index(f"{escape_and_shorten(record.writer, TEXT)}.log")
        yield [
            # To a microsecond: further digits would only make the page larger.
            round(record.t - start_t, 6),
            word_table.get_or_add_text_index(_choose_event_lane(event)),
            word_table.get_or_add_text_index(text[:9].strip()),
            # Before the event, when it began.
            round(event.duration_s, 6) if isinstance(event, events.CallFinished | events.PromptFinished) else 0.0,
            _choose_event_tone(record, fault, gone),
            word_table.get_or_add_text_index(escape_and_shorten(text[9:], TEXT)),
            file,
            record.seq,
        ]


def _choose_event_lane(event: events.Event) -> str:
    if isinstance(event, events.Stage | events.FaultUnreached):
        return FAULTS
    if isinstance(event, events.Effect):
        return EFFECTS
    if isinstance(event, events.CallStarted | events.CallFinished):
        return escape_and_shorten(event.target, 60)
    return AGENT


def _choose_event_tone(record: Record, fault: AttemptFault | None, given_up_places: Set[Place]) -> int:
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


def escape_json_for_html(data: dict[str, Any]) -> str:
    """The data as JSON that can stand in a script element: ASCII, without a sign that HTML reads."""
    # ASCII, so that U+2028, at which scripts once ended a line, is escaped too.
    spelt = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    # "</script>" in a tool's reply would end the element.
    return spelt.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
