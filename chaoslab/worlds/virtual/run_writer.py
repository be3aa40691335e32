"""Writes a run from its trials as if they had run one after the other: each begins at the end of the one before it,
with all that came after its answer."""

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

from chaoslab.core.events import Event, RunFinished, RunStarted
from chaoslab.record.held import MAIN
from chaoslab.record.log import BufferedEvent, Log, masked
from chaoslab.record.pack_sums import Block
from chaoslab.record.packed_log import BYTES as PACK
from chaoslab.record.packed_log import PackedLog


class RunWriter:
    """A run's folder. Raises LogLost if it cannot be written."""

    block = 100
    """The trials that are summed up together. A pack ends with them."""

    def __init__(
        self, folder: Path, run: str, now: str, *, keep: str = "all", packed: Callable[[bytes], object] | None = None
    ) -> None:
        """`keep`: "all" stories, or those that "failed" (`pipeline.results` sees to it). `packed`: the trials go into
        packs, and it is called with the lines of each of the main log, after the first line."""
        self.folder, self._run, self._began = folder, run, datetime.fromisoformat(now)
        self.keep, self._packed = keep, packed
        self._logs: dict[str, Log] = {}
        self._stack = ExitStack()
        self.seconds = 0.0
        """The duration of all trials so far, in their worlds' time."""
        self._trials = self._succeeded = self._asked = 0
        self._places: list[tuple[float, int]] = []
        """The beginning of each trial of the block that is under way, and the number of lines before it."""

    def begin(self, started: RunStarted) -> None:
        self._asked = started.prompts
        self.note(started)

    def add(self, kept: Iterable[BufferedEvent], *, seconds: float, ok: bool) -> None:
        """Writes a trial; each log gets all of its events or none, and the main log only after the others."""
        self._places.append((self.seconds, self._log(MAIN).lines))
        entries = list(kept)
        # The main log last: a trial that it has begun has the lines of all others, wherever the lab was killed.
        writers = sorted(dict.fromkeys(entry.writer for entry in entries), key=MAIN.__eq__)
        for writer in writers:
            own = entries if len(writers) == 1 else [entry for entry in entries if entry.writer == writer]
            self._log(writer).keep(own, began=self._began, after_s=self.seconds)
        self.seconds += max([seconds, *(entry.t for entry in entries)])
        self._trials += 1
        self._succeeded += ok
        if self._trials % self.block == 0 and not self.sums:
            self._end_block()

    @property
    def sums(self) -> bool:
        """True if it takes the sums of trials, of every `block` of them and of the last ones (`sum_up`)."""
        return self._packed is not None and self.keep == "all"

    def sum_up(self, sums: bytes | None) -> None:
        """Takes the sums of the trials since the last ones; None if there are none."""
        log = self._log(MAIN)
        if sums is not None and isinstance(log, PackedLog):
            after_s, lines = map(list, zip(*self._places, strict=True))
            log.sums.append(Block(after_s, lines, sums))
        self._end_block()

    def _end_block(self) -> None:
        self._places.clear()
        if sum(log.held for log in self._logs.values()) >= PACK:
            self._pack()

    def end(self, reason: str) -> None:
        self.note(
            RunFinished(
                received=self._asked,
                processed=self._trials,
                succeeded=self._succeeded,
                duration_s=round(self.seconds, 6),
                reason=reason,
                lines={writer: log.lines for writer, log in self._logs.items() if writer != MAIN},
            )
        )

    def note(self, event: Event) -> None:
        self._pack()
        self._log(MAIN).copy(
            masked([BufferedEvent.of(MAIN, 0.0, None, event)]), began=self._began, after_s=self.seconds
        )

    def _pack(self) -> None:
        for writer, log in sorted(self._logs.items(), key=_main_last):
            lines = log.pack()
            if lines and writer == MAIN and self._packed is not None:
                self._packed(lines)

    def _log(self, writer: str) -> Log:
        if writer not in self._logs:
            if self._packed is None:
                log = Log(self.folder, writer, run=self._run, origin=0.0)
            else:
                log = PackedLog(self.folder, writer, run=self._run)
            self._logs[writer] = self._stack.enter_context(log)
        return self._logs[writer]

    def __enter__(self) -> "RunWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def _main_last(entry: tuple[str, object]) -> bool:
    return entry[0] == MAIN
