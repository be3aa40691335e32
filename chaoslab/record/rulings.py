"""The rulings of a scenario on the trials of a run, as lines of JSON in the run's folder."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from chaoslab.base.jsonable import to_one_line
from chaoslab.record.lines import iterate_lines

FILE = "rulings.jsonl"
TEXT = 300
"""The most characters of a text that is read."""


class RulingState(StrEnum):
    """The ruling on a trial or a scenario. INVALID: it proves nothing, since a fault was not met or nothing could be
    judged."""

    PASSED = "passed"
    FAILED = "failed"
    INVALID = "invalid"


@dataclass(frozen=True)
class TrialRuling:
    """The ruling on one trial. `reasons`: why it has not passed, one line each. `again`: the command that runs it
    again, if it has not passed. `harm`: it did harm, whatever its outcome and whatever the scenario accepts."""

    state: RulingState
    reasons: tuple[str, ...] = ()
    again: str = ""
    harm: bool = False


@dataclass(frozen=True)
class Rulings:
    """The rulings of a run. `asked`: what was required of each trial, one line each. `trials`: the number that were to
    be run. `state`, `why`: the ruling on the whole; None if it did not come to an end. `cut_lines`: the numbers
    of the lines that could not be read."""

    scenario: str
    asked: tuple[str, ...] = ()
    trials: int = 0
    by_trial: Mapping[str, TrialRuling] = field(default_factory=dict)
    state: RulingState | None = None
    why: tuple[str, ...] = ()
    cut_lines: tuple[int, ...] = ()

    @property
    def final_state(self) -> RulingState | None:
        """The ruling on the whole; None if it is that of a part: the scenario was interrupted, or the log has lost
        lines of trials that passed."""
        # The others may still fail. A scenario that has failed has failed.
        is_whole = self.state is RulingState.FAILED or len(self.by_trial) >= self.trials
        return self.state if is_whole else None

    def drop_passes_with_gaps(self, torn: Collection[str]) -> Rulings:
        """The same without the trials that passed and of which the log has lost lines since: nobody can read what let
        them pass. `torn`: these trials."""
        passed = {
            trial
            for trial in torn
            if (own_rulings := self.by_trial.get(trial)) and own_rulings.state is RulingState.PASSED
        }
        left_out = {trial: ruling for trial, ruling in self.by_trial.items() if trial not in passed}
        return replace(self, by_trial=left_out) if passed else self

    @classmethod
    def read(cls, folder: Path) -> Rulings | None:
        """The rulings in a run's folder; None if no scenario ran it. Raises OSError: the file is there and cannot be
        read."""
        path = folder / FILE
        if not path.exists():
            return None
        head: dict[str, Any] = {}
        end: dict[str, Any] = {}
        by_trial: dict[str, TrialRuling] = {}
        cut: list[int] = []
        for number, data in enumerate(iterate_lines(path), 1):
            fields = _parse_object(data)
            state = _parse_state(fields.get("state"))
            if isinstance(fields.get("scenario"), str):
                head = fields
            elif state is None:
                cut.append(number)
            elif "trial" in fields:
                reasons = _clean_texts(fields.get("reasons"))
                by_trial[str(fields["trial"])] = TrialRuling(
                    state, reasons, _clean_text(fields.get("again")), fields.get("harm") is True
                )
            else:
                end = fields
        return cls(
            scenario=_clean_text(head.get("scenario")),
            asked=_clean_texts(head.get("asked")),
            trials=trials if isinstance(trials := head.get("trials"), int) else 0,
            by_trial=by_trial,
            state=_parse_state(end.get("state")),
            why=_clean_texts(end.get("why")),
            cut_lines=tuple(cut),
        )


@dataclass
class RulingsFile:
    """Writes the rulings on a run, each as it is made. `folder`: the run's. The other fields are those of `Rulings`."""

    folder: Path
    scenario: str
    asked: Sequence[str]
    trials: int
    _begun: bool = False

    def add_ruling(self, trial: str, ruling: TrialRuling) -> None:
        """Writes the ruling on a trial. Raises OSError: it cannot be written."""
        if not self._begun:
            self._begun = True
            self._append_line(scenario=self.scenario, asked=self.asked, trials=self.trials)
        self._append_line(trial=trial, **vars(ruling))

    def write_final_ruling(self, state: RulingState, reason: Sequence[str]) -> None:
        """Writes the ruling on the whole. Raises OSError: it cannot be written."""
        self._append_line(state=state, why=reason)

    def _append_line(self, **fields: Any) -> None:
        stated_fields = {name: value for name, value in fields.items() if value}
        with (self.folder / FILE).open("ab") as file:
            file.write(json.dumps(stated_fields, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n")


def _parse_object(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _parse_state(value: Any) -> RulingState | None:
    return RulingState(value) if value in list(RulingState) else None


def _clean_text(value: Any) -> str:
    return to_one_line(value, TEXT) if isinstance(value, str) else ""


def _clean_texts(value: Any) -> tuple[str, ...]:
    return tuple(_clean_text(text) for text in value if isinstance(text, str)) if isinstance(value, list) else ()
