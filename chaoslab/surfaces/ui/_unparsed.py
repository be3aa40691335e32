"""Looks at logs without parsing them: counts what is there and not read yet, and finds the lines of one trial."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from chaoslab.base.files import opened
from chaoslab.core.events import CallFinished, Event, FaultWitnessed, PromptFinished
from chaoslab.record.lines import LINE_MAX, Record, log_files, parse_line
from chaoslab.record.packs import PACK, Packs

CHUNK = 1 << 18
"""The bytes that are searched at once."""
NO_TRIAL = b'"trial": null'


class UnreadNumbers:
    """The numbers of some events that a log has behind what was read of it. They are counted by the text of a line's
    kind, which takes a hundredth of the time of reading: a page need not wait for its reader. An argument that looks
    like a kind counts too, until it is read."""

    def __init__(self) -> None:
        self.counts = Counter[type[Event]]()
        self._texts = {
            kind: f'"kind": "{kind.kind}"'.encode() for kind in (CallFinished, FaultWitnessed, PromptFinished)
        }
        self._longest = max(map(len, self._texts.values()))
        self._read = self._end = 0

    def look(self, log: Path, read: int) -> None:
        """Counts what has come. `read`: the bytes that were read of the log. Raises OSError: the log cannot be read."""
        if not log.is_file():
            return
        with opened(log) as file:
            end = file.seek(0, 2)
            for begin, until, sign in ((self._end, end, 1), (self._read, read, -1)):
                while begin < until:
                    file.seek(before := max(0, begin - self._longest))
                    data, lead = file.read(min(CHUNK, until - begin) + begin - before), begin - before
                    if len(data) <= lead:  # it was cut meanwhile
                        break
                    for kind, text in self._texts.items():  # those that end in this part
                        self.counts[kind] += sign * data.count(text, max(0, lead - len(text) + 1))
                    begin += len(data) - lead
        self._read, self._end = read, end
        if read >= end:
            self.counts.clear()


def of_trial(folder: Path, trial: str) -> Iterator[Record]:
    """The events of one trial of a run, and those of the whole run, without parsing the others. Raises OSError: a log
    cannot be read."""
    own = f'"trial": {json.dumps(trial)}'.encode()
    packs = Packs([trial])
    for path in log_files(folder):
        with opened(path) as file:
            while lines := file.read(CHUNK):
                lines += file.readline(LINE_MAX)
                if not any(text in lines for text in (own, NO_TRIAL, PACK)):
                    continue
                for text in packs.expanded(folder, lines.split(b"\n")):
                    if (own in text or NO_TRIAL in text) and (record := parse_line(text)) is not None:
                        yield record
