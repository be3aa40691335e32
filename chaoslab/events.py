"""What happened, as typed events: the only output of a run.

Each line of a log is one JSON object: `ts` (UTC, ISO 8601), `t` (seconds since the run began, the world's monotonic clock),
`run`, `trial` ("p3.r1", or null), `writer`, `seq`, `kind`, and the fields of the kind's class below. One writer owns one
file; a line is with the system before the writer goes on, so a killed process loses nothing that it had logged.
"""

from __future__ import annotations

import errno
import json
import math
import os
import re
import threading
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from chaoslab.clock import Clock, iso, system

UNTOLD, UNTOLD_S = "untold", math.nan
"""What a log of another lab does not tell, and a duration that it does not tell. Our own log tells all."""


class Event:
    """The base of all kinds; `kind` is the class's name in snake case."""

    kind: ClassVar[str]
    kinds: ClassVar[dict[str, type[Event]]] = {}

    def __init_subclass__(cls) -> None:
        cls.kind = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
        Event.kinds[cls.kind] = cls


@dataclass(frozen=True)
class RunStarted(Event):
    """The lab is up. `settings` are all settings in force (secrets masked), `plan` is the plan as data, `now` is ISO 8601.

    From a log of another lab, a `seed` of None and an empty `plan`, `now` or `model` are not known.
    """

    seed: int | None
    settings: dict[str, Any]
    plan: dict[str, Any]
    prompts: int
    now: str
    model: str


@dataclass(frozen=True)
class PromptStarted(Event):
    """A trial begins. `facts`: each a list of spellings of which one must show in the answer. `effects`: what must have happened."""

    prompt_index: int
    prompt: str
    facts: list[list[str]] = field(default_factory=list)
    effects: list[dict[str, Any]] = field(default_factory=list)
    stated: bool = False
    """False: nothing was stated about a right answer, the outcome will be unknown."""


@dataclass(frozen=True)
class CallStarted(Event):
    """One attempt leaves the seam."""

    target: str
    tool: str
    request: int
    attempt: int
    request_id: str
    arguments: Any = None


@dataclass(frozen=True)
class CallFinished(Event):
    """The attempt is over. `via`: "proxy" (clean lane), "lane" (poisoned), "direct" (around the proxy) or "none" (never left).

    `ok`: the caller got a right-looking answer. `error`: timed_out, refused, reset, closed, garbled, too_large, or the service's own message.
    `rolled`: the injections whose dice were rolled for this attempt (it was eligible for them).
    """

    target: str
    tool: str
    request: int
    attempt: int
    request_id: str
    ok: bool
    duration_s: float
    status: int | None = None
    error: str | None = None
    bytes: int = 0
    via: str = "proxy"
    rolled: list[str] = field(default_factory=list)
    replayed: bool = False


@dataclass(frozen=True)
class _FaultEvent:
    fault: str
    injection: str
    target: str
    request: int
    attempt: int
    request_id: str


@dataclass(frozen=True)
class FaultScheduled(_FaultEvent, Event):
    """The dice hit: this attempt shall meet the fault."""

    params: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class FaultArmed(_FaultEvent, Event):
    """A lane with the fault's toxics stands and was read back (faults of the wire only)."""

    lane: str = ""
    took_s: float = 0.0


@dataclass(frozen=True)
class FaultInjected(_FaultEvent, Event):
    """The fault changed the exchange."""


@dataclass(frozen=True)
class FaultWitnessed(_FaultEvent, Event):
    """The caller observed the fault's effect; `evidence` says what."""

    evidence: str = ""


@dataclass(frozen=True)
class FaultHealed(_FaultEvent, Event):
    """The lane is gone. An armed fault that was healed unwitnessed makes its trial invalid."""

    witnessed: bool = True


@dataclass(frozen=True)
class LabDisturbed(Event):
    """The clean proxies were gone and have been made anew: Toxiproxy was restarted, say (manager.log, without a trial).

    `since`: when it was noticed (ISO 8601); `lasted_s`: until all stood again; `lanes`: armed lanes lost with it; `epoch`: how often
    this has happened to this manager.
    """

    what: str
    since: str
    lasted_s: float
    lanes: list[str]
    epoch: int


@dataclass(frozen=True)
class CallDisturbed(Event):
    """An attempt was hit by something that nobody planned: it was cut, held up, or its lane was lost. Its trial is invalid."""

    target: str
    tool: str
    request: int
    attempt: int
    request_id: str
    why: str


@dataclass(frozen=True)
class Retry(Event):
    """The tool will try the same request again after `wait_s`."""

    target: str
    tool: str
    request: int
    attempt: int
    request_id: str
    wait_s: float
    reason: str


@dataclass(frozen=True)
class Fallback(Event):
    """After the last retry, one call around the proxy."""

    target: str
    tool: str
    request: int
    attempt: int
    request_id: str
    address: str


@dataclass(frozen=True)
class Usage(Event):
    """What one answer of the model cost; `cost_usd` is None for a model without a known price."""

    model: str
    request: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None = None


@dataclass(frozen=True)
class Effect(Event):
    """A service did something that outlives the call: the ledger's entry.

    `effect`: event_created, event_deleted or message_sent; `content`: the object as the service keeps it; `reply`: the answer given
    (`status`, `body` as text, `headers`), so that a repeated request id gets it again after a restart; `fingerprint`: of the request's body.
    """

    target: str
    tool: str
    request_id: str
    effect: str
    content: dict[str, Any]
    reply: dict[str, Any]
    fingerprint: str


@dataclass(frozen=True)
class Budget(Event):
    """A limit was passed: `limit` is tokens, cost_usd, calls or seconds; `mode` is hard (the call was refused) or soft."""

    limit: str
    spent: float
    allowed: float
    mode: str
    target: str


@dataclass(frozen=True)
class Warning(Event):  # noqa: A001 - the field's own word
    """Something that a person should know, in one line."""

    message: str


@dataclass(frozen=True)
class PromptAttempt(Event):
    """One attempt at a prompt (agent.log). `status`: ok or error; `error_type`: model, loop, empty, agent, or none."""

    prompt_index: int
    prompt: str
    response: str
    status: str
    start_time: str
    end_time: str
    duration_s: float
    error_type: str
    prompt_attempt: int
    error: str = ""


@dataclass(frozen=True)
class PromptFinished(Event):
    """A trial ends. `status`: ok, failed, or (another lab's log) untold; `answer` is the agent's last word. `attempts` of None: untold."""

    prompt_index: int
    prompt: str
    status: str
    answer: str
    attempts: int | None
    duration_s: float
    error_type: str = "none"


@dataclass(frozen=True)
class RunFinished(Event):
    """The run ends. `reason`: done, interrupted, lab_down, broken. A count of -1: another lab's log does not tell it."""

    received: int
    processed: int
    succeeded: int
    duration_s: float
    reason: str = "done"


@dataclass(frozen=True)
class Record:
    """One line of a log: the envelope and its event."""

    ts: str
    t: float
    run: str
    trial: str | None
    writer: str
    seq: int
    event: Event


class LogLost(BaseException):
    """A line could not be written; says which file, why, and what to do. What went on from here would be an experiment without a record.

    No `Exception`, since an SDK would take it for one more network error and retry it.
    """


class Log:
    """Appends events to `<folder>/<writer>.log`: when `write` returns the whole line is there, when it raises none of it is.

    Safe to share between threads.
    """

    def __init__(self, folder: Path, writer: str, *, run: str, origin: float, clock: Clock = system) -> None:
        """`origin` is the monotonic time at which the run began.

        Raises:
            OSError: the file cannot be opened.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{writer}.log"
        self._run, self._writer, self._origin, self._clock = run, writer, origin, clock
        self._seq = _mend(self.path)
        self._file = self.path.open("ab", buffering=0)
        self._lock = threading.Lock()
        self.lost: LogLost | None = None
        """What `write` last raised: a framework between it and the writer's owner may swallow it."""
        self._torn = False

    def write(self, event: Event, *, trial: str | None = None) -> None:
        """Raises LogLost: the disk is full, or the file was deleted, say."""
        with self._lock:
            envelope = {
                "ts": iso(self._clock.utc()),
                "t": round(self._clock.monotonic() - self._origin, 6),
                "run": self._run,
                "trial": trial,
                "writer": self._writer,
                "seq": self._seq + 1,
                "kind": event.kind,
            }
            line = json.dumps(envelope | asdict(event), ensure_ascii=False)  # type: ignore[call-overload]
            try:
                self._append(line.encode("utf-8", "surrogatepass") + b"\n")
            except OSError as error:
                why = f"{self.path} cannot be written ({error.strerror or error})"
                self.lost = LogLost(f"{why}: {REMEDIES.get(error.errno or 0, 'see to it')} and start again")
                raise self.lost from error
            self._seq += 1

    def _append(self, line: bytes) -> None:
        file = self._file.fileno()
        held = os.fstat(file)
        if self._torn:
            raise OSError(errno.EIO, "its last line is cut")
        if not held.st_nlink:  # the system would take each line, and nobody could read it
            raise FileNotFoundError(errno.ENOENT, "it was deleted")
        try:
            while line:
                line = line[os.write(file, line) :]
        except BaseException:
            self._torn = True
            os.ftruncate(file, held.st_size)
            self._torn = False
            raise

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Log:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


REMEDIES = {
    errno.ENOSPC: "make room",
    errno.EDQUOT: "make room",
    errno.EFBIG: "raise the limit of a file's size",
    errno.ENOENT: "leave a run's folder alone while it goes on",
    errno.EROFS: "make it writable",
}


def _mend(path: Path) -> int:
    """Ends a line that a killed writer left cut, and returns how many lines the file then holds."""
    if not path.exists():
        return 0
    data = path.read_bytes()
    if data and not data.endswith(b"\n"):
        with path.open("ab") as file:
            file.write(b"\n")
    return data.count(b"\n") + (1 if data and not data.endswith(b"\n") else 0)


E_ = TypeVar("E_", bound=Event)


class History:
    """All events of a run, merged by (time, writer, sequence).

    `cut` counts lines that could not be read, by file name. `untold` are the kinds that another lab's log has no place for, so that
    their absence says nothing; `notes` are lines for a person on how it was read.
    """

    def __init__(
        self,
        records: Iterable[Record],
        *,
        cut: dict[str, int] | None = None,
        untold: Iterable[type[Event]] = (),
        notes: Iterable[str] = (),
    ) -> None:
        self.records = sorted(records, key=lambda r: (r.t, r.writer, r.seq))
        self.cut = cut or {}
        self.untold = frozenset(untold)
        self.notes = tuple(notes)

    @classmethod
    def read(cls, folder: Path) -> History:
        """Reads every `*.log` of a run's folder.

        Raises:
            FileNotFoundError: no such folder, or no log in it.
        """
        paths = sorted(path for path in folder.glob("*.log") if path.is_file())
        if not paths:
            raise FileNotFoundError(f"no logs in {folder}")
        records: list[Record] = []
        cut: dict[str, int] = {}
        for path in paths:
            for line in path.read_bytes().splitlines():
                record = parse_line(line)
                if record is not None:
                    records.append(record)
                elif line.strip():
                    cut[path.name] = cut.get(path.name, 0) + 1
        return cls(records, cut=cut)

    def of(self, kind: type[E_], *, trial: str | None = None) -> Iterator[tuple[Record, E_]]:
        """The events of one kind in time order, each with its line's envelope."""
        for record in self.records:
            if isinstance(record.event, kind) and (trial is None or record.trial == trial):
                yield record, record.event

    def tells(self, kind: type[Event]) -> bool:
        """Whether an event of this kind would be here if it had happened."""
        return kind not in self.untold

    def first(self, kind: type[E_]) -> E_ | None:
        return next((event for _, event in self.of(kind)), None)

    @property
    def trials(self) -> list[str]:
        """The trials in the order in which they began."""
        return [record.trial for record, _ in self.of(PromptStarted) if record.trial is not None]


def parse_line(line: bytes) -> Record | None:
    """The record of a line; None when the line is cut, foreign, or of a kind that this version does not know."""
    try:
        data = json.loads(line)
        kind = Event.kinds[data["kind"]]
        names = {f.name for f in fields(kind)}  # type: ignore[arg-type]
        event = kind(**{name: value for name, value in data.items() if name in names})
        return Record(data["ts"], float(data["t"]), data["run"], data["trial"], data["writer"], int(data["seq"]), event)
    except (ValueError, KeyError, TypeError):
        return None
