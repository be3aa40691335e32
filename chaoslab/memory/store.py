"""The memory: one SQLite file beside the logs, with tables that a person can read. `runs`, `experiments` and `calls`
are filled from logs. `components`, `ranges`, `relations` and `lessons` are made of them anew whenever something was
added or left out."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaoslab.analysis.measures.intervals import wilson
from chaoslab.base import extras
from chaoslab.base.clock import iso
from chaoslab.base.durations import duration
from chaoslab.base.registry import BrokenPlugin, did_you_mean
from chaoslab.memory import _reading
from chaoslab.reports import places
from chaoslab.search.planning.cells import Cell
from chaoslab.search.planning.dose import DoseRange, range_of
from chaoslab.search.planning.evidence import Evidence, Experiment, TargetKnowledge
from chaoslab.search.planning.similar import similar

if TYPE_CHECKING:
    import pandas as pd

FILE, VERSION, APPLICATION = "memory.db", 1, 0x63686C62
PATIENCE_S = 10.0
"""The longest wait for another process that holds the file, in seconds."""
OLD = ".old"
"""The ending of a memory that was laid aside."""
KNOWN, ARCHIVED, FORGOTTEN = "known", "archived", "forgotten"
SCHEMA = """
CREATE TABLE runs (key TEXT PRIMARY KEY, name TEXT, folder TEXT, began TEXT, world TEXT, subject TEXT, agent TEXT,
    seed INTEGER, level REAL, revision TEXT, trials INTEGER, bad INTEGER, harm INTEGER, seconds REAL, tokens INTEGER,
    usd REAL, state TEXT NOT NULL DEFAULT 'known');
CREATE INDEX runs_by_folder ON runs (folder);
CREATE TABLE experiments (run TEXT NOT NULL REFERENCES runs ON DELETE CASCADE, target TEXT, fault TEXT, how TEXT,
    params TEXT, dose REAL, tried INTEGER, bad INTEGER, blame REAL, alone INTEGER, harm INTEGER, harm_blame REAL,
    near INTEGER, outcomes TEXT, affected TEXT, incidents INTEGER, recovered INTEGER, repair_s REAL, timed INTEGER,
    seconds REAL, squares REAL, tokens INTEGER, usd REAL);
CREATE INDEX experiments_by_run ON experiments (run);
CREATE TABLE calls (run TEXT NOT NULL REFERENCES runs ON DELETE CASCADE, target TEXT, trials INTEGER, called INTEGER,
    effects INTEGER, undoable INTEGER);
CREATE INDEX calls_by_run ON calls (run);
CREATE TABLE components (subject TEXT, target TEXT, fault TEXT, how TEXT, tried INTEGER, bad INTEGER, alone INTEGER,
    bad_share REAL, low REAL, high REAL, harm INTEGER, incidents INTEGER, recovered INTEGER, mttr_s REAL);
CREATE TABLE ranges (subject TEXT, target TEXT, fault TEXT, how TEXT, parameter TEXT, safe REAL, unsafe REAL,
    safe_n REAL, unsafe_n REAL, mixed INTEGER);
CREATE TABLE relations (subject TEXT, target TEXT, fault TEXT, other TEXT, failed INTEGER, n INTEGER, strength REAL,
    low REAL, high REAL);
CREATE TABLE lessons (subject TEXT, target TEXT, lesson TEXT);
"""
DERIVED = ("components", "ranges", "relations", "lessons")
TABLES = ("runs", "experiments", *DERIVED)
COLUMNS = (
    "target", "fault", "how", "params", "dose", "tried", "bad", "blame", "alone", "harm", "harm_blame", "near",
    "outcomes", "affected", "incidents", "recovered", "repair_s", "timed", "seconds", "squares", "tokens", "usd",
)  # fmt: skip


class Unusable(LookupError):
    """The memory is not there, damaged or of another version. The message is one line, with the remedy."""


class Busy(Unusable):
    """The memory cannot be read now, as while another process writes it. It may be whole."""


@dataclass
class AddedRuns:
    """The result of an addition: runs that are new, that have changed since, that were known already, and those that
    hold no run of this lab, each with the reason in one line."""

    new: int = 0
    changed: int = 0
    known: int = 0
    skipped: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = [
            f"{self.new} new",
            *([f"{self.changed} changed"] if self.changed else []),
            f"{self.known} known already",
        ]
        return ", ".join([*parts, *([f"{len(self.skipped)} skipped"] if self.skipped else [])])


class Memory:
    """A memory in a file. Its tables as pandas frames: `experiments`, `components`, `ranges`, `relations`, `lessons`,
    `runs`."""

    def __init__(self, path: Path, *, make: bool = False) -> None:
        """Opens the file. `make`: it is made if it is not there, and one that cannot be used is laid aside, with
        `.old` after its name (`laid_aside`). Raises Unusable: it is not there, or cannot be used. OSError: it cannot
        be made."""
        self.path, self.laid_aside = path, ""
        if make and path.is_file():
            try:
                self._check()
            except Busy:
                raise
            except Unusable as error:
                old = _free(path.with_name(path.name + OLD))
                path.replace(old)
                self.laid_aside = f"{error.args[0].partition(': ')[2].partition('; ')[0]}: it is kept as {old}"
        if make and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            with self._open() as db:
                db.executescript(f"{SCHEMA} PRAGMA user_version={VERSION}; PRAGMA application_id={APPLICATION};")
        self._check()

    @property
    def _again(self) -> str:
        return f"it is made anew by `chaoslab memory add {self.path.parent}/*`"

    def _check(self) -> None:
        again = self._again
        if not self.path.is_file():
            raise Unusable(f"{self.path}: there is no memory yet; {again}")
        with self._open() as db:
            (version,), (made_by,) = (db.execute(f"PRAGMA {name}").fetchone() for name in _PRAGMAS)
            damaged = db.execute("PRAGMA quick_check(1)").fetchone()[0] if made_by == APPLICATION else "ok"
            tables = _columns_in(db)
        if made_by != APPLICATION:
            raise Unusable(f"{self.path}: it is no memory of chaoslab; {again}")
        if version != VERSION:
            raise Unusable(f"{self.path}: it is of version {version}, and this chaoslab reads {VERSION}; {again}")
        if damaged != "ok":
            raise Unusable(f"{self.path}: it is damaged; {again}")
        if lacking := sorted(_wanted() - tables):
            raise Unusable(f"{self.path}: it is damaged: it has no {'.'.join(lacking[0])}; {again}")

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """A connection whose changes are kept whole or not at all. Raises Busy: it cannot be used now. Unusable: it is
        damaged."""
        try:
            with closing(sqlite3.connect(self.path, timeout=PATIENCE_S)) as db, db:
                db.execute("PRAGMA foreign_keys = ON")
                yield db
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in _CORRUPT:
                raise Unusable(f"{self.path}: it is damaged ({error}); {self._again}") from None
            raise Busy(f"{self.path}: it cannot be used now ({error}); it stays as it is: try again later") from None

    def add(self, folders: Iterable[Path], *, again: bool = False) -> AddedRuns:
        """Adds the runs in these folders. `again`: also those that were forgotten or archived. Raises Busy:
        the memory cannot be written now. BrokenPlugin: an outcome or a kind of experiment raised."""
        found = AddedRuns()
        with self._open() as db:
            states = dict(db.execute("SELECT key, state FROM runs"))
            for folder in folders:
                try:
                    key = _reading.key_of(folder)
                    if key in states and not (again and states[key] != KNOWN):
                        found.known += 1
                        continue
                    run = _reading.read(folder)
                except BrokenPlugin:
                    raise
                except (LookupError, OSError) as error:
                    why = error.args[0] if isinstance(error, LookupError) else places.unreadable(folder, error)
                    found.skipped = (*found.skipped, str(why))
                    continue
                changed = db.execute(
                    "DELETE FROM runs WHERE key = ? OR (folder = ? AND name = ?)", (key, _absolute(folder), run.name)
                ).rowcount
                self._put(db, run)
                states[key] = KNOWN
                found.changed += bool(changed)
                found.new += not changed
            if found.new or found.changed:
                self._derive(db)
        return found

    def _put(self, db: sqlite3.Connection, run: _reading.RunRead) -> None:
        facts = run.trials
        timed = [each.seconds for each in facts if each.seconds is not None]
        row = (
            run.key, run.name, _absolute(run.folder), iso(run.began), run.world, run.subject, run.agent, run.seed,
            run.level, run.revision, len(facts), sum(each.bad and each.judged for each in facts),
            sum(each.harm for each in facts), sum(timed), sum(each.tokens for each in facts),
            sum(each.usd for each in facts), KNOWN,
        )  # fmt: skip
        _insert(db, "runs", [row])
        _insert(db, "experiments", [(run.key, *_columns(each)) for each in run.experiments])
        calls = [(run.key, name, t.trials, t.called, t.effects, t.undoable) for name, t in sorted(run.targets.items())]
        _insert(db, "calls", calls)

    # What is left out.

    def archive(self, before: str) -> int:
        """Leaves the runs that began before this moment (ISO 8601) out of every sum; returns their number."""
        with self._open() as db:
            done = db.execute(
                "UPDATE runs SET state = ? WHERE state = ? AND began < ?", (ARCHIVED, KNOWN, before)
            ).rowcount
            self._derive(db)
        return done

    def forget(self, *, run: str = "", subject: str = "", target: str = "") -> int:
        """Takes out the experiments of a run (its name, key or folder), of a subject or at a target; returns their
        number. A run that was forgotten is not added again, unless that is asked for. Raises LookupError: there is
        none."""
        with self._open() as db:
            column, wanted = next(
                (name, each) for name, each in (("run", run), ("subject", subject), ("target", target)) if each
            )
            if target:
                done = db.execute("DELETE FROM experiments WHERE target = ?", (target,)).rowcount
                known = [name for (name,) in db.execute("SELECT DISTINCT target FROM experiments WHERE target <> ''")]
            else:
                where = "subject = :it" if subject else "name = :it OR key = :it OR folder = :path"
                keys = [key for (key,) in db.execute(
                    f"SELECT key FROM runs WHERE state <> '{FORGOTTEN}' AND ({where})",
                    {"it": wanted, "path": _absolute(Path(wanted))},
                )]  # fmt: skip
                done = len(keys)
                for key in keys:
                    for table in ("experiments", "calls"):
                        db.execute(f"DELETE FROM {table} WHERE run = ?", (key,))
                    db.execute("UPDATE runs SET state = ? WHERE key = ?", (FORGOTTEN, key))
                known = [
                    name for (name,) in db.execute(f"SELECT DISTINCT {'subject' if subject else 'name'} FROM runs")
                ]
            if not done:
                hint = f": {did_you_mean(wanted, known)}" if known else ""
                raise LookupError(f"{self.path} knows no {column} '{wanted[:60]}'{hint}")
            self._derive(db)
        return done

    # What is made of it.

    def _derive(self, db: sqlite3.Connection) -> None:
        for table in DERIVED:
            db.execute(f"DELETE FROM {table}")
        by_place: dict[tuple[str, str, str, str], list[Experiment]] = defaultdict(list)
        for each in _experiments(db):
            if (cell := each.cell) is not None:
                by_place[each.subject, cell.target, cell.fault, cell.how].append(each)
        lessons: list[tuple[str, str, str]] = []
        pairs: dict[tuple[str, str, str, str], list[int]] = defaultdict(lambda: [0, 0])
        for place, own in sorted(by_place.items()):
            subject, target, fault, _ = place
            row = _component(own)
            _insert(db, "components", [(*place, *row)])
            ranges = [*_ranges(own)]
            _insert(db, "ranges", [(*place, name, *astuple(found)) for name, found in ranges])
            lessons += [(subject, target, text) for text in _lessons(place, row, ranges)]
            for each in own:
                for other, (failed, all_) in each.affected.items():
                    sums = pairs[subject, target, fault, other]
                    sums[0], sums[1] = sums[0] + failed, sums[1] + all_
        for (subject, target, fault, other), (failed, all_) in sorted(pairs.items()):
            interval = wilson(failed, all_)
            if not failed or interval is None:
                continue
            pair = (subject, target, fault, other, failed, all_, failed / all_, interval.low, interval.high)
            _insert(db, "relations", [pair])
            share = f"{failed} of {all_} trials ({interval.low:.0%}–{interval.high:.0%})"
            lessons.append((subject, target, f"with {fault} at {target}, calls of {other} failed in {share}"))
        _insert(db, "lessons", sorted(lessons))

    def evidence(self, subject: str = "", *, agent: str = "", without: Sequence[str] = ()) -> Evidence:
        """The sums that planning asks for. `subject`: runs of its `agent` that no scenario made count as its own.
        `without`: the keys of runs to leave out."""
        with self._open() as db:
            mine = {
                key for (key,) in db.execute("SELECT key FROM runs WHERE agent = ? AND subject = agent", (agent,))
            } if subject and agent else set()  # fmt: skip
            targets: dict[tuple[str, str], TargetKnowledge] = {}
            for key, name, target, *counts in db.execute(
                "SELECT key, subject, target, calls.trials, called, effects, undoable FROM calls JOIN runs"
                f" ON run = key WHERE state = '{KNOWN}'"
            ):
                if key not in without:
                    place = subject if key in mine else name, target
                    targets[place] = targets.get(place, TargetKnowledge()) + TargetKnowledge(*counts)
            rows = (
                replace(each, subject=subject) if key in mine else each
                for key, each in _keyed(db) if key not in without
            )  # fmt: skip
            return Evidence(rows, targets)

    def subjects(self) -> list[str]:
        """The subjects that are known, by name."""
        with self._open() as db:
            asked = f"SELECT DISTINCT subject FROM runs WHERE state = '{KNOWN}' AND subject <> '' ORDER BY subject"
            return [name for (name,) in db.execute(asked)]

    def similar(self, experiment: Experiment, n: int = 5) -> list[tuple[float, Experiment]]:
        """The `n` experiments that are most like this one, each with its likeness from 0 to 1 (`planning/similar`)."""
        with self._open() as db:
            return similar(experiment, _experiments(db), n)

    def rows(self, table: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """The columns and the rows of a table. Raises LookupError: there is no such table."""
        if table not in TABLES:
            raise LookupError(f"the memory has no table '{table[:60]}': {did_you_mean(table, TABLES)}")
        with self._open() as db:
            found = db.execute(f"SELECT * FROM {table}")
            return [name for name, *_ in found.description], found.fetchall()

    def __getattr__(self, table: str) -> pd.DataFrame:
        """A table as a pandas frame."""
        if table not in TABLES:
            raise AttributeError(f"a memory has no {table}: its tables are {', '.join(TABLES)}")
        extras.check_module("a frame of the memory", "pandas", "charts")
        import pandas as pd

        columns, rows = self.rows(table)
        return pd.DataFrame(rows, columns=columns)

    def __repr__(self) -> str:
        with self._open() as db:
            runs, tried = (db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES[:2])
        return f"Memory({str(self.path)!r}: {runs} runs, {tried} experiments)"


def memory(logs: str | Path = places.LOGS) -> Memory:
    """The memory beside the logs of this folder, or in this file. Raises Unusable: there is none, or it is damaged or
    of another version; the message is one line."""
    path = Path(logs)
    return Memory(path if path.suffix == ".db" else path / FILE)


_CORRUPT = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
"""The only errors that tell of a damage. Others come and go, as while another process holds the file."""
_PRAGMAS = ("user_version", "application_id")


@cache
def _wanted() -> frozenset[tuple[str, str]]:
    """The columns of each table, as (table, column)."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(SCHEMA)
        return frozenset(_columns_in(db))


def _columns_in(db: sqlite3.Connection) -> set[tuple[str, str]]:
    asked = "SELECT t.name, c.name FROM sqlite_master t, pragma_table_info(t.name) c WHERE t.type = 'table'"
    return {(table, column) for table, column in db.execute(asked)}


def _free(path: Path) -> Path:
    """The path, or with a number behind it if that is taken: an older copy is never written over."""
    names = (path, *(path.with_name(f"{path.name}.{number}") for number in range(2, 10**6)))
    return next(each for each in names if not each.exists())


def _absolute(folder: Path) -> str:
    return str(folder.resolve())


def _insert(db: sqlite3.Connection, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
    if rows:
        db.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)


def _columns(each: Experiment) -> tuple[Any, ...]:
    cell = each.cell or Cell("", "", "")
    of_cell = (cell.target, cell.fault, cell.how, _text(dict(cell.params)), cell.dose)
    own = {"outcomes": _text(each.outcomes), "affected": _text(each.affected)}
    return (*of_cell, *(own.get(name, getattr(each, name, None)) for name in COLUMNS[5:]))


def _text(value: Mapping[str, Any]) -> str:
    return json.dumps(dict(value), ensure_ascii=False, sort_keys=True)


def _experiments(db: sqlite3.Connection) -> Iterator[Experiment]:
    return (each for _, each in _keyed(db))


def _keyed(db: sqlite3.Connection) -> Iterator[tuple[str, Experiment]]:
    """The experiments that count, each with the key of its run."""
    parsed, affected, cell = cache(json.loads), cache(_affected), cache(_cell)
    columns = ", ".join(f"experiments.{name}" for name in COLUMNS)
    asked = f"SELECT key, subject, world, {columns} FROM experiments JOIN runs ON run = key WHERE state = '{KNOWN}'"
    for key, subject, world, target, fault, how, params, dose, *rest in db.execute(asked):
        sums = dict(zip(COLUMNS[5:], rest, strict=True))
        sums["outcomes"], sums["affected"] = parsed(sums["outcomes"]), affected(sums["affected"])
        yield key, Experiment(subject, cell(target, fault, how, params, dose), world=world, **sums)


def _affected(text: str) -> dict[str, tuple[int, int]]:
    return {name: (failed, all_) for name, (failed, all_) in json.loads(text).items()}


def _cell(target: str, fault: str, how: str, params: str, dose: float | None) -> Cell | None:
    return Cell(target, fault, how, tuple(sorted(json.loads(params).items())), dose) if fault else None


def _component(own: Sequence[Experiment]) -> tuple[Any, ...]:
    names = ("tried", "bad", "alone", "harm", "incidents", "recovered")
    tried, bad, alone, harm, incidents, recovered = (sum(getattr(each, name) for each in own) for name in names)
    interval = wilson(bad, tried)
    low, high = (None, None) if interval is None else (interval.low, interval.high)
    mttr_s = sum(each.repair_s for each in own) / recovered if recovered else None
    return (tried, bad, alone, bad / tried if tried else None, low, high, harm, incidents, recovered, mttr_s)


def _ranges(own: Sequence[Experiment]) -> Iterator[tuple[str, DoseRange]]:
    """The range of each parameter that is a number, the dose first."""
    tried: dict[str, dict[float, list[float]]] = {}
    for each in own:
        if each.cell is None:
            continue
        numbers = [(key, value) for key, value in each.cell.params if type(value) in (int, float)]
        doses = [(each.cell.dosed or "dose", each.cell.dose)] if each.cell.dose is not None else []
        for name, value in [*doses, *numbers]:
            at = tried.setdefault(name, {}).setdefault(float(value), [0.0, 0.0])
            at[0], at[1] = at[0] + each.tried - each.bad + each.alone, at[1] + each.alone
    return ((name, range_of(found)) for name, found in tried.items())


def _lessons(
    place: tuple[str, str, str, str], row: tuple[Any, ...], ranges: Sequence[tuple[str, DoseRange]]
) -> Iterator[str]:
    """A sentence for each thing that was shown."""
    _, target, fault, how = place
    tried, bad, alone, _, low, high, harm, _, _, mttr_s = row
    if bad:
        shown = f"{bad} of {tried} trials ended badly ({low:.0%}–{high:.0%})"
        others = "" if alone == bad else f", {bad - alone} of them with other faults, too"
        yield f"with {fault} at {target}, {how}, {shown}{f', {harm} with harm' if harm else ''}{others}"
    elif tried:
        shown = f"survived {tried} of {tried} times (at most {high:.0%} end badly)"
        yield f"{fault} at {target}, {how}, was {shown}{f', repaired in {duration(mttr_s)}' if mttr_s else ''}"
    for name, found in ranges:
        if found.safe is not None or found.unsafe is not None:
            yield f"{name} of {fault} at {target}, {how}: {found.in_words(in_s=name.endswith('_s'))}"
