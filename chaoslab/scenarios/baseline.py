"""The baseline of `chaoslab gate`: the trials of scenarios as they were, in a file of JSON, one trial a line."""

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from chaoslab.analysis.verdict.exposure import Exposure
from chaoslab.analysis.verdict.standing import Count, stand_by_fact
from chaoslab.base.clock import iso, system
from chaoslab.base.commandline import FORMAT
from chaoslab.base.files import Unreadable, json_of
from chaoslab.base.identity import digest
from chaoslab.base.version import __version__
from chaoslab.record.provenance import changes, revision
from chaoslab.reports.formats import put
from chaoslab.scenarios.comparing import PLACES
from chaoslab.scenarios.located import ScenarioError
from chaoslab.scenarios.scenario import Scenario
from chaoslab.search.pairs import FIGURES, Side

OLD_D = 30
"""The age in days from which on a baseline is called old."""
SUITE = (*PLACES, "accept", "expect", "effects", "facts", "state", "deadline")
"""The keys of a scenario on which its trials and their rulings depend, beside its agent and its agent's world."""


@dataclass(frozen=True)
class Suite:
    """The trials of one scenario. `parts`: a digest of each key in SUITE. `rows`: the trials by number, from 1."""

    name: str
    seed: int
    parts: Mapping[str, str]
    rows: Mapping[int, Side]

    @classmethod
    def of(cls, scenario: Scenario, seed: int, sides: Sequence[Side]) -> "Suite":
        return cls(scenario.name, seed, parts_of(scenario), dict(enumerate(sides, 1)))

    @property
    def harm(self) -> int:
        return sum(side.harm for side in self.rows.values())

    def count(self, figure: str) -> Count:
        """The trials by one of FIGURES."""
        return Count.of(stand_by_fact(getattr(side, figure)) for side in self.rows.values())

    def unfit(self, open_max: float) -> str:
        """The reason why these trials are no baseline: no fault was met, or too many are open; empty if they are."""
        exposure = Exposure()
        for side in self.rows.values():
            exposure.add(met=side.met, held=side.held)
        if exposure.nothing:
            return exposure.nothing
        for figure, words in FIGURES.items():
            counted = self.count(figure)
            stated = figure == "well" or counted.judged
            if stated and counted.open > open_max * counted.total:
                why = next(side.why for side in self.rows.values() if getattr(side, figure) is None)
                return f"{counted.open} of {counted.total} trials are open ({words}), and {open_max:.0%} may be: {why}"
        return ""


@dataclass(frozen=True)
class Baseline:
    """`date`: in UTC, as ISO 8601. `revision`: the commit that has the code of its trials; empty if there is none."""

    lab: str
    python: str
    revision: str
    date: str
    suites: Mapping[str, Suite]

    @classmethod
    def now(cls, suites: Sequence[Suite], path: Path) -> "Baseline":
        """The baseline of these trials, made at this moment for a file."""
        commit = "" if changes(but=path) else revision()
        return cls(__version__, _python(), commit, iso(system.utc()), {each.name: each for each in suites})

    @property
    def in_words(self) -> str:
        return f"of {self.date[:10]}{f', revision {self.revision}' if self.revision else ''}"

    @property
    def notes(self) -> list[str]:
        """The warnings about one that fits, one line each."""
        found = []
        days = (system.utc() - datetime.fromisoformat(self.date).astimezone(UTC)).days
        if days > OLD_D:
            found.append(f"the baseline is {days} days old ({self.in_words}): --write makes a new one")
        if self.python != _python():
            found.append(f"the baseline was made with Python {self.python}, and this is {_python()}")
        return found

    def suite(self, path: Path, scenario: Scenario, seed: int) -> Suite:
        """The trials of this scenario. Raises ScenarioError: it has none, or they are of another suite, seed or version
        of the lab."""
        found = self.suites.get(scenario.name)
        if self.lab != __version__:
            raise ScenarioError(f"{path} was made by chaoslab {self.lab}, and this is {__version__}: {AGAIN}")
        if found is None:
            there = ", ".join(self.suites) or "none"
            raise ScenarioError(f"{path} has no scenario {scenario.name!r} (there are {there}): {AGAIN}")
        if found.seed != seed:
            raise ScenarioError(f"{path}: {scenario.name} had seed {found.seed}, and now it is {seed}: {AGAIN}")
        parts = parts_of(scenario)
        if other := [key for key in SUITE if found.parts.get(key) != parts[key]]:
            raise ScenarioError(f"{path}: {scenario.name} is another suite, by its {', '.join(other)}: {AGAIN}")
        return found

    def save(self, path: Path) -> None:
        """Writes the file. Raises OSError: it cannot be written, or something else is there."""
        own = {key: value for key, value in vars(self).items() if key != "suites"}
        head = {"chaoslab": FORMAT, "baseline": VERSION, **own}
        suites = ",\n".join(_text(each) for each in self.suites.values())
        put(f'{json.dumps(head)[:-1]}, "suites": [\n{suites}\n]}}\n', path)

    @classmethod
    def read(cls, path: Path) -> "Baseline":
        """The baseline of a file. Raises ScenarioError: there is none, or it is no baseline."""
        try:
            found = json_of(path)
            if found["baseline"] != VERSION:
                raise ScenarioError(f"{path} is a baseline of another form: {AGAIN}")
            suites = [_suite(each) for each in found["suites"]]
            made = cls(**{key: str(found[key]) for key in HEAD}, suites={each.name: each for each in suites})
            datetime.fromisoformat(made.date)
        except Unreadable as error:
            hint = ": --write makes one" if error.missing else ""
            raise ScenarioError(f"the baseline {path} {error}{hint}") from None
        except (LookupError, TypeError, ValueError, AttributeError):
            raise ScenarioError(f"{path} is no baseline of chaoslab gate: --write makes one") from None
        return made


VERSION = 2
"""The form of the file. 2: a trial says if all was done as asked, and if it met a fault."""
HEAD = ("lab", "python", "revision", "date")
AGAIN = "--write makes a new one"


def parts_of(scenario: Scenario) -> dict[str, str]:
    """A digest of each key in SUITE."""
    plain = scenario.spec.model_dump(mode="json")
    return {key: digest(plain.get(key))[:8] for key in SUITE}


def _python() -> str:
    return ".".join(platform.python_version_tuple()[:2])


def _text(suite: Suite) -> str:
    head = json.dumps({"name": suite.name, "seed": suite.seed, "parts": suite.parts})
    kept = ({"number": number, **_short(side)} for number, side in suite.rows.items())
    rows = ",\n".join(f"  {json.dumps(row, allow_nan=False)}" for row in kept)
    return f' {head[:-1]}, "trials": [\n{rows}\n ]}}'


def _short(side: Side) -> dict[str, Any]:
    """The side without what is as it is by default."""
    always = ("well", "outcome", "why", "calls", "seconds", "harm", "done", "met")
    usual = Side(None, "", "", 0, 0.0)
    return {key: value for key, value in side.plain().items() if key in always or value != getattr(usual, key)}


def _suite(plain: dict[str, Any]) -> Suite:
    rows = {int(each["number"]): Side.of({k: v for k, v in each.items() if k != "number"}) for each in plain["trials"]}
    if [*rows] != [*range(1, len(rows) + 1)]:
        raise ValueError("the trials are not numbered from 1")
    return Suite(str(plain["name"]), int(plain["seed"]), dict(plain["parts"]), rows)
