"""The memory: one SQLite file beside the logs, with tables that a person can read. `runs`, `experiments` and `calls`
are filled from logs and from notes, the lines of `notes.jsonl`. `components`, `ranges`, `relations` and `lessons` are
made of them anew whenever something was added or left out."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaoslab.base import extras
from chaoslab.base.clock import format_iso, system
from chaoslab.base.identity import hash_value
from chaoslab.base.registry import suggest_name
from chaoslab.memory import _reading
from chaoslab.memory._lessons import Component, Place, describe_lessons, find_dose_ranges, find_knock_on_failures
from chaoslab.record.lines import iterate_lines
from chaoslab.reports import places
from chaoslab.search.planning.cells import ONCE, Cell
from chaoslab.search.planning.design import Design
from chaoslab.search.planning.evidence import Evidence, Experiment, TargetKnowledge

if TYPE_CHECKING:
    import pandas as pd

FILE, NOTES, VERSION, APPLICATION = "memory.db", "notes.jsonl", 2, 0x63686C62  # the letters "chlb"
PATIENCE_S = 10.0
"""The longest wait for another process that holds the file, in seconds."""
OLD = ".old"
"""The ending of a damaged memory that was renamed."""
KNOWN, FORGOTTEN = "known", "forgotten"
SCHEMA = """
CREATE TABLE runs (key TEXT PRIMARY KEY, name TEXT, folder TEXT, began TEXT, world TEXT, subject TEXT,
    scenario TEXT, seed INTEGER, level REAL, revision TEXT, trials INTEGER, bad INTEGER, harm INTEGER, seconds REAL,
    tokens INTEGER, usd REAL, state TEXT NOT NULL DEFAULT 'known');
CREATE INDEX runs_by_folder ON runs (folder);
CREATE TABLE experiments (run TEXT NOT NULL REFERENCES runs ON DELETE CASCADE, target TEXT, fault TEXT, how TEXT,
    params TEXT, dose REAL, tried INTEGER, bad INTEGER, harm INTEGER, near INTEGER, joint INTEGER, joint_bad INTEGER,
    void INTEGER, outcomes TEXT, affected TEXT, drew INTEGER, incidents INTEGER, recovered INTEGER, repair_s REAL,
    timed INTEGER, seconds REAL, squares REAL, tokens INTEGER, usd REAL);
CREATE INDEX experiments_by_run ON experiments (run);
CREATE TABLE calls (run TEXT NOT NULL REFERENCES runs ON DELETE CASCADE, target TEXT, trials INTEGER, called INTEGER,
    effects INTEGER, undoable INTEGER);
CREATE INDEX calls_by_run ON calls (run);
CREATE TABLE components (subject TEXT, target TEXT, fault TEXT, how TEXT, revision TEXT, tried INTEGER, bad INTEGER,
    bad_share REAL, low REAL, high REAL, harm INTEGER, joint INTEGER, joint_bad INTEGER, incidents INTEGER,
    recovered INTEGER, mttr_s REAL, before_revision TEXT, before_tried INTEGER, before_bad INTEGER);
CREATE TABLE ranges (subject TEXT, target TEXT, fault TEXT, how TEXT, parameter TEXT, safe REAL, unsafe REAL,
    safe_n REAL, unsafe_n REAL, mixed INTEGER);
CREATE TABLE relations (subject TEXT, target TEXT, fault TEXT, other TEXT, failed INTEGER, n INTEGER, strength REAL,
    twin_failed INTEGER, p REAL);
CREATE TABLE lessons (subject TEXT, target TEXT, lesson TEXT);
"""
DERIVED = ("components", "ranges", "relations", "lessons")
TABLES = ("runs", "experiments", *DERIVED)
COLUMNS = (
    "target",
    "fault",
    "how",
    "params",
    "dose",
    "tried",
    "bad",
    "harm",
    "near",
    "joint",
    "joint_bad",
    "void",
    "outcomes",
    "affected",
    "drew",
    "incidents",
    "recovered",
    "repair_s",
    "timed",
    "seconds",
    "squares",
    "tokens",
    "usd",
)
NOTED = "noted"
"""The world of what somebody has noted by hand."""


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
        """Opens the file. `make`: it is made if it is not there, and one that cannot be used is renamed, with
        `.old` after its name (`laid_aside`). Raises Unusable: it is not there, or cannot be used. OSError: it cannot
        be made."""
        self.path, self.laid_aside = path, ""
        if make and path.is_file():
            try:
                self._check_database_file()
            except Busy:
                raise
            except Unusable as error:
                old = _pick_free_path(path.with_name(path.name + OLD))
                path.replace(old)
                self.laid_aside = f"{error.args[0].partition(': ')[2].partition('; ')[0]}: it is kept as {old}"
        if make and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            with self._open_database() as db:
                db.executescript(f"{SCHEMA} PRAGMA user_version={VERSION}; PRAGMA application_id={APPLICATION};")
        self._check_database_file()

    @property
    def _rebuild_hint(self) -> str:
        return f"it is made anew by `chaoslab memory add {self.path.parent}/*`"

    def _check_database_file(self) -> None:
        again = self._rebuild_hint
        if not self.path.is_file():
            raise Unusable(f"{self.path}: there is no memory yet; {again}")
        with self._open_database() as db:
            (version,), (made_by,) = (db.execute(f"PRAGMA {name}").fetchone() for name in _PRAGMAS)
            damaged = db.execute("PRAGMA quick_check(1)").fetchone()[0] if made_by == APPLICATION else "ok"
            tables = _read_columns(db)
        if made_by != APPLICATION:
            raise Unusable(f"{self.path}: it is no memory of chaoslab; {again}")
        if version != VERSION:
            raise Unusable(f"{self.path}: it is of version {version}, and this chaoslab reads {VERSION}; {again}")
        if damaged != "ok":
            raise Unusable(f"{self.path}: it is damaged; {again}")
        if lacking := sorted(_list_expected_columns() - tables):
            raise Unusable(f"{self.path}: it is damaged: it has no {'.'.join(lacking[0])}; {again}")

    @contextmanager
    def _open_database(self) -> Iterator[sqlite3.Connection]:
        """A connection whose changes are kept whole or not at all. Raises Busy: it cannot be used now. Unusable: it is
        damaged."""
        try:
            # The connection's own context commits or rolls back, and closes nothing.
            with closing(sqlite3.connect(self.path, timeout=PATIENCE_S)) as db, db:
                # SQLite heeds foreign keys only where a connection asks for it.
                db.execute("PRAGMA foreign_keys = ON")
                yield db
        except sqlite3.DatabaseError as error:
            # The low byte is the code itself; the others tell more of it.
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in _CORRUPT:
                raise Unusable(f"{self.path}: it is damaged ({error}); {self._rebuild_hint}") from None
            raise Busy(f"{self.path}: it cannot be used now ({error}); it stays as it is: try again later") from None

    def add(self, folders: Iterable[Path], *, again: bool = False) -> AddedRuns:
        """Adds the runs in these folders, and the notes beside the memory. `again`: also those that were forgotten.
        Raises Busy: the memory cannot be written now."""
        added = AddedRuns()
        with self._open_database() as db:
            states = dict(db.execute("SELECT key, state FROM runs"))
            for folder in folders:
                try:
                    key = _reading.compute_run_key(folder)
                    if key in states and not (again and states[key] != KNOWN):
                        added.known += 1
                        continue
                    run = _reading.read_run(folder)
                except (LookupError, OSError) as error:
                    reason = (
                        error.args[0] if isinstance(error, LookupError) else places.explain_unreadable(folder, error)
                    )
                    added.skipped = (*added.skipped, str(reason))
                    continue
                changed = db.execute(
                    "DELETE FROM runs WHERE key = ? OR (folder = ? AND name = ?)",
                    (key, _make_absolute_path(folder), run.name),
                ).rowcount
                self._insert_run(db, run)
                states[key] = KNOWN
                # A run that went on, or was judged since, has other bytes and so another key: its old rows went.
                added.changed += bool(changed)
                added.new += not changed
            noted = [note_run for note_run in self._iterate_notes_as_runs() if note_run.key not in states]
            for note_run in noted:
                self._insert_run(db, note_run)
            if added.new or added.changed or noted:
                self._rebuild_derived_tables(db)
        return added

    def note(
        self,
        agent: str,
        text: str = "",
        *,
        target: str = "",
        fault: str = "",
        how: str = ONCE,
        params: Mapping[str, Any] | None = None,
        tried: int = 1,
        bad: int = 0,
        harm: int = 0,
        revision: str | None = None,
    ) -> None:
        """Notes what was learnt elsewhere, as in production: that of `tried` trials of an agent with a fault at a
        target `bad` ended badly, `harm` of them with harm; or a text alone. It is a line of `notes.jsonl` beside the
        memory. `how`: once or always. `revision`: of the agent's code, by default the last that is known. Raises
        ValueError, LookupError: something in it is wrong; one line."""
        if not agent or not (text or fault):
            raise ValueError("a note needs an agent, and a text or a fault with its target")
        if not all(type(number) is int for number in (tried, bad, harm)) or not 0 <= harm <= bad <= tried or not tried:
            raise ValueError(f"tried {tried}, bad {bad}, harm {harm}: of 1 trial or more, bad ones, and of these harm")
        cell = (
            Design.build_from_fields({"target": target, "fault": fault, "how": how, "params": params or {}}).cell
            if fault
            else None
        )
        if cell is None and bad:
            raise ValueError("bad trials without a fault: name the fault and its target")
        line = {
            "agent": agent, "text": text[:200], "target": target, "fault": fault, "how": how,
            "params": cell.parameters_for_inject if cell else {}, "tried": tried if cell else 0,
            "bad": bad, "harm": harm,
            "revision": self.collect_evidence(agent).revision if revision is None else revision,
            "at": format_iso(system.utc()),
        }  # fmt: skip
        with (self.path.parent / NOTES).open("a", encoding="utf-8") as file:
            file.write(_render_json(line) + "\n")
        self.add([])

    def _iterate_notes_as_runs(self) -> Iterator[_reading.RunRead]:
        """Each note as a run. Lines that are none are left out."""
        path = self.path.parent / NOTES
        for number, line in enumerate(iterate_lines(path) if path.is_file() else (), 1):
            try:
                note = json.loads(line)
                agent, target = note["agent"], note["target"]
                tried_count, bad, harm = (int(note[name]) for name in ("tried", "bad", "harm"))
                cell = Cell.build(target, note["fault"], note["params"], note["how"]) if note["fault"] else None
                tried = Experiment(agent, cell, tried_count, bad, harm, world=NOTED)
                yield _reading.RunRead(
                    hash_value([number, note]),
                    note["text"],
                    path,
                    datetime.fromisoformat(note["at"]).astimezone(UTC),
                    NOTED,
                    agent,
                    revision=note["revision"],
                    experiments=[tried] if cell else [],
                    targets={target: TargetKnowledge()} if target else {},
                )
            except (ValueError, TypeError, KeyError, AttributeError):
                continue

    def _insert_run(self, db: sqlite3.Connection, run: _reading.RunRead) -> None:
        facts = run.trials
        timed = [row_facts.seconds for row_facts in facts if row_facts.seconds is not None]
        row = (
            run.key,
            run.name,
            _make_absolute_path(run.folder),
            format_iso(run.began),
            run.world,
            run.subject,
            run.scenario,
            run.seed,
            run.level,
            run.revision,
            len(facts),
            sum(row_facts.bad and row_facts.judged for row_facts in facts),
            sum(row_facts.harm for row_facts in facts),
            sum(timed),
            sum(row_facts.tokens for row_facts in facts),
            sum(row_facts.usd for row_facts in facts),
            KNOWN,
        )
        _insert_rows(db, "runs", [row])
        _insert_rows(db, "experiments", [(run.key, *_experiment_to_row(row_facts)) for row_facts in run.experiments])
        calls = [(run.key, name, t.trials, t.called, t.effects, t.undoable) for name, t in sorted(run.targets.items())]
        _insert_rows(db, "calls", calls)

    # What is left out.

    def forget(self, *, run: str = "", subject: str = "", target: str = "") -> int:
        """Takes out the experiments of a run (its name, key or folder), of a subject or at a target; returns their
        number. A run that was forgotten is not added again, unless that is asked for. Raises LookupError: there is
        none."""
        with self._open_database() as db:
            column, value = next(
                (name, argument)
                for name, argument in (("run", run), ("subject", subject), ("target", target))
                if argument
            )
            if target:
                deleted_count = db.execute("DELETE FROM experiments WHERE target = ?", (target,)).rowcount
                known_names = [
                    name for (name,) in db.execute("SELECT DISTINCT target FROM experiments WHERE target <> ''")
                ]
            else:
                condition = "subject = :it" if subject else "name = :it OR key = :it OR folder = :path"
                keys = [
                    key
                    for (key,) in db.execute(
                        f"SELECT key FROM runs WHERE state <> '{FORGOTTEN}' AND ({condition})",
                        {"it": value, "path": _make_absolute_path(Path(value))},
                    )
                ]
                deleted_count = len(keys)
                for key in keys:
                    for table in ("experiments", "calls"):
                        db.execute(f"DELETE FROM {table} WHERE run = ?", (key,))
                    db.execute("UPDATE runs SET state = ? WHERE key = ?", (FORGOTTEN, key))
                known_names = [
                    name for (name,) in db.execute(f"SELECT DISTINCT {'subject' if subject else 'name'} FROM runs")
                ]
            if not deleted_count:
                hint = f": {suggest_name(value, known_names)}" if known_names else ""
                raise LookupError(f"{self.path} knows no {column} '{value[:60]}'{hint}")
            self._rebuild_derived_tables(db)
        return deleted_count

    # What is made of it.

    def _rebuild_derived_tables(self, db: sqlite3.Connection) -> None:
        for table in DERIVED:
            db.execute(f"DELETE FROM {table}")
        by_place: dict[Place, list[Experiment]] = defaultdict(list)
        last: dict[str, str] = {}
        for experiment in _iterate_experiments(db):
            last[experiment.subject] = experiment.revision
            if (cell := experiment.cell) is not None and (experiment.tried or experiment.joint):
                by_place[experiment.subject, cell.target, cell.fault, cell.how].append(experiment)
        query = "SELECT subject, target, name FROM runs LEFT JOIN calls ON run = key"
        query += f" WHERE world = '{NOTED}' AND state = '{KNOWN}' AND name <> ''"
        lessons = [(subject, target or "", f"noted: {text}") for subject, target, text in db.execute(query)]
        newest: list[tuple[Place, list[Experiment]]] = []
        for cell_place, rows in sorted(by_place.items()):
            latest_rows = [experiment for experiment in rows if experiment.revision == rows[-1].revision]
            newest.append((cell_place, latest_rows))
            component = Component.from_experiments(rows)
            _insert_rows(db, "components", [(*cell_place, *component.table_row)])
            ranges = [*find_dose_ranges(latest_rows)]
            _insert_rows(db, "ranges", [(*cell_place, name, *astuple(experiment)) for name, experiment in ranges])
            stale = component.revision != last[cell_place[0]]
            lessons += [
                (*cell_place[:2], text) for text in describe_lessons(cell_place, component, ranges, stale=stale)
            ]
        relations = [*find_knock_on_failures(newest)]
        _insert_rows(db, "relations", relations)
        for subject, target, fault, other_target, failed, total, *_ in relations:
            lesson = (
                f"with {fault} at {target}, calls of {other_target} failed in {failed} of {total} trials, "
                f"not in their twins"
            )
            lessons.append((subject, target, lesson))
        _insert_rows(db, "lessons", sorted(lessons))

    def collect_evidence(self, subject: str, *, revision: str | None = None, without: Sequence[str] = ()) -> Evidence:
        """The evidence of an agent. `revision`: the one that counts, by default that of its last run. `without`: the
        keys of runs to leave out."""
        with self._open_database() as db:
            targets: dict[str, TargetKnowledge] = {}
            for key, target, *counts in db.execute(
                "SELECT key, target, calls.trials, called, effects, undoable FROM calls JOIN runs ON run = key"
                f" WHERE state = '{KNOWN}' AND subject = ?",
                (subject,),
            ):
                if key not in without:
                    targets[target] = targets.get(target, TargetKnowledge()) + TargetKnowledge(*counts)
            faults = [name for (name,) in db.execute("SELECT DISTINCT fault FROM experiments WHERE fault <> ''")]
            rows = [experiment for key, experiment in _iterate_keyed_experiments(db, subject) if key not in without]
            return Evidence(subject, rows, targets, revision=revision, faults=faults)

    def find_agent(self, name: str) -> str:
        """The agent of this name, or of the only scenario of this name; empty if there is none."""
        with self._open_database() as db:
            query = f"SELECT DISTINCT subject FROM runs WHERE state = '{KNOWN}' AND (subject = :it OR scenario = :it)"
            agents = [agent for (agent,) in db.execute(query, {"it": name})]
            return name if name in agents else agents[0] if len(agents) == 1 else ""

    def list_agents(self) -> list[str]:
        """The agents that are known, by name."""
        with self._open_database() as db:
            query = f"SELECT DISTINCT subject FROM runs WHERE state = '{KNOWN}' AND subject <> '' ORDER BY subject"
            return [name for (name,) in db.execute(query)]

    def read_table(self, table: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """The columns and the rows of a table. Raises LookupError: there is no such table."""
        if table not in TABLES:
            raise LookupError(f"the memory has no table '{table[:60]}': {suggest_name(table, TABLES)}")
        with self._open_database() as db:
            cursor = db.execute(f"SELECT * FROM {table}")
            return [name for name, *_ in cursor.description], cursor.fetchall()

    def __getattr__(self, table: str) -> pd.DataFrame:
        """A table as a pandas frame."""
        if table not in TABLES:
            raise AttributeError(f"a memory has no {table}: its tables are {', '.join(TABLES)}")
        extras.require_module("a frame of the memory", "pandas", "charts")
        import pandas as pd

        columns, rows = self.read_table(table)
        return pd.DataFrame(rows, columns=columns)

    def __repr__(self) -> str:
        with self._open_database() as db:
            runs, tried = (db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES[:2])
        return f"Memory({str(self.path)!r}: {runs} runs, {tried} experiments)"


def memory(logs: str | Path = places.LOGS) -> Memory:
    """The memory beside the logs of this folder, or in this file. Raises Unusable: there is none, or it is damaged or
    of another version; the message is one line."""
    path = Path(logs)
    return Memory(path if path.suffix == ".db" else path / FILE)


def add_note(logs: str | Path, agent: str, text: str = "", **learnt: Any) -> None:
    """Notes in the memory beside the logs of this folder what was learnt elsewhere; one is made if there is none. The
    other arguments: as `Memory.add_note`, which says what it raises. Raises Unusable: it cannot be used."""
    path = Path(logs)
    Memory(path if path.suffix == ".db" else path / FILE, make=not path.exists() or path.is_dir()).note(
        agent, text, **learnt
    )


_CORRUPT = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
"""The only errors that tell of a damage. Others come and go, as while another process holds the file."""
_PRAGMAS = ("user_version", "application_id")


@cache
def _list_expected_columns() -> frozenset[tuple[str, str]]:
    """The columns of each table, as (table, column)."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(SCHEMA)
        return frozenset(_read_columns(db))


def _read_columns(db: sqlite3.Connection) -> set[tuple[str, str]]:
    query = "SELECT t.name, c.name FROM sqlite_master t, pragma_table_info(t.name) c WHERE t.type = 'table'"
    return {(table, column) for table, column in db.execute(query)}


def _pick_free_path(path: Path) -> Path:
    """The path, or with a number behind it if that is taken: an older copy is never written over."""
    numbered = (path.with_name(f"{path.name}.{number}") for number in count(2))
    return next(candidate for candidate in chain((path,), numbered) if not candidate.exists())


def _make_absolute_path(folder: Path) -> str:
    return str(folder.resolve())


def _insert_rows(db: sqlite3.Connection, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
    if rows:
        db.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)


def _experiment_to_row(experiment: Experiment) -> tuple[Any, ...]:
    cell = experiment.cell or Cell("", "", "")
    of_cell = (cell.target, cell.fault, cell.how, _render_json(dict(cell.params)), cell.dose)
    json_columns = {"outcomes": _render_json(experiment.outcomes), "affected": _render_json(experiment.affected)}
    return (*of_cell, *(json_columns.get(name, getattr(experiment, name, None)) for name in COLUMNS[5:]))


def _render_json(value: Mapping[str, Any]) -> str:
    return json.dumps(dict(value), ensure_ascii=False, sort_keys=True)


def _iterate_experiments(db: sqlite3.Connection) -> Iterator[Experiment]:
    return (experiment for _, experiment in _iterate_keyed_experiments(db))


def _iterate_keyed_experiments(db: sqlite3.Connection, subject: str = "") -> Iterator[tuple[str, Experiment]]:
    """The experiments that count, each with the key of its run, in the order of the runs. `subject`: of one alone."""
    # Many rows hold the same texts.
    parsed, affected, cell = cache(json.loads), cache(_parse_affected_counts), cache(_parse_cell)
    columns = ", ".join(f"experiments.{name}" for name in COLUMNS)
    query = f"SELECT key, subject, world, revision, {columns} FROM experiments JOIN runs ON run = key"
    # By length too: of runs that began within one second, the one with -10 behind its name comes after -9.
    query += f" WHERE state = '{KNOWN}' AND :subject IN ('', subject) ORDER BY began, length(folder), folder"
    for key, row_subject, world, revision, target, fault, kind, params, dose, *rest in db.execute(
        query, {"subject": subject}
    ):
        sums = dict(zip(COLUMNS[5:], rest, strict=True))
        sums["outcomes"], sums["affected"] = parsed(sums["outcomes"]), affected(sums["affected"])
        experiment = Experiment(
            row_subject, cell(target, fault, kind, params, dose), world=world, revision=revision, **sums
        )
        yield key, experiment


def _parse_affected_counts(text: str) -> dict[str, tuple[int, int, int]]:
    return {name: (lost, regained, all_) for name, (lost, regained, all_) in json.loads(text).items()}


def _parse_cell(target: str, fault: str, kind: str, params: str, dose: float | None) -> Cell | None:
    return Cell(target, fault, kind, tuple(sorted(json.loads(params).items())), dose) if fault else None
