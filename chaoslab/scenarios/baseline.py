"""The baseline of `chaoslab gate`: the trials of scenarios as they were, in a file of JSON, one trial a line."""

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from chaoslab.analysis.verdict.exposure import FaultExposure
from chaoslab.analysis.verdict.standing import StandingCount, get_fact_standing
from chaoslab.base.clock import format_iso, system
from chaoslab.base.commandline import FORMAT
from chaoslab.base.files import Unreadable, read_json
from chaoslab.base.identity import hash_value
from chaoslab.base.version import __version__
from chaoslab.record.provenance import digest_uncommitted_changes, read_git_commit
from chaoslab.reports.formats import write_file
from chaoslab.scenarios.comparing import SHARED_KEYS
from chaoslab.scenarios.located import ScenarioError
from chaoslab.scenarios.scenario import Scenario
from chaoslab.search.pairs import FIGURES, Side

OLD_D = 30
"""The age in days from which on a baseline is called old."""
SUITE_KEYS = (*SHARED_KEYS, "accept", "expect", "effects", "facts", "state", "deadline")
"""The keys of a scenario on which its trials and their rulings depend, beside its agent and its agent's world."""


@dataclass(frozen=True)
class Suite:
    """The trials of one scenario. `parts`: a digest of each key in SUITE. `rows`: the trials by number, from 1."""

    name: str
    seed: int
    parts: Mapping[str, str]
    rows: Mapping[int, Side]

    @classmethod
    def from_sides(cls, scenario: Scenario, seed: int, sides: Sequence[Side]) -> "Suite":
        return cls(scenario.name, seed, digest_suite_keys(scenario), dict(enumerate(sides, 1)))

    @property
    def harm_count(self) -> int:
        return sum(side.harm for side in self.rows.values())

    def count_standings(self, figure: str) -> StandingCount:
        """The trials by one of FIGURES."""
        return StandingCount.from_standings(get_fact_standing(getattr(side, figure)) for side in self.rows.values())

    def explain_unfit(self, open_max: float) -> str:
        """The reason why these trials are no baseline: no fault was met, or too many are open; empty if they are."""
        exposure = FaultExposure()
        for side in self.rows.values():
            exposure.add_trial(met=side.met, held=side.held)
        if exposure.no_proof_reason:
            return exposure.no_proof_reason
        for figure, figure_text in FIGURES.items():
            # A figure that nobody stated is open in every trial, and no reason against it.
            standings = self.count_standings(figure)
            is_stated = figure == "well" or standings.judged_count
            if is_stated and standings.open > open_max * standings.total:
                reason = next(side.why for side in self.rows.values() if getattr(side, figure) is None)
                return (
                    f"{standings.open} of {standings.total} trials are open ({figure_text}), and "
                    f"{open_max:.0%} may be: {reason}"
                )
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
    def create_now(cls, suites: Sequence[Suite], path: Path) -> "Baseline":
        """The baseline of these trials, made at this moment for a file."""
        # A commit with changes that are not in it has not the code of its trials.
        commit = "" if digest_uncommitted_changes(but=path) else read_git_commit()
        return cls(
            __version__, _python_version(), commit, format_iso(system.utc()), {suite.name: suite for suite in suites}
        )

    @property
    def date_and_revision(self) -> str:
        return f"of {self.date[:10]}{f', revision {self.revision}' if self.revision else ''}"

    @property
    def age_warnings(self) -> list[str]:
        """The warnings about one that fits, one line each."""
        warnings = []
        days = (system.utc() - datetime.fromisoformat(self.date).astimezone(UTC)).days
        if days > OLD_D:
            warnings.append(f"the baseline is {days} days old ({self.date_and_revision}): --write makes a new one")
        if self.python != _python_version():
            warnings.append(f"the baseline was made with Python {self.python}, and this is {_python_version()}")
        return warnings

    def get_matching_suite(self, path: Path, scenario: Scenario, seed: int) -> Suite:
        """The trials of this scenario. Raises ScenarioError: it has none, or they are of another suite, seed or version
        of the lab."""
        suite = self.suites.get(scenario.name)
        if self.lab != __version__:
            raise ScenarioError(f"{path} was made by chaoslab {self.lab}, and this is {__version__}: {REWRITE_HINT}")
        if suite is None:
            names = ", ".join(self.suites) or "none"
            raise ScenarioError(f"{path} has no scenario {scenario.name!r} (there are {names}): {REWRITE_HINT}")
        if suite.seed != seed:
            raise ScenarioError(f"{path}: {scenario.name} had seed {suite.seed}, and now it is {seed}: {REWRITE_HINT}")
        parts = digest_suite_keys(scenario)
        # By its parts, so that the line can name the key that differs.
        if changed_keys := [key for key in SUITE_KEYS if suite.parts.get(key) != parts[key]]:
            raise ScenarioError(
                f"{path}: {scenario.name} is another suite, by its {', '.join(changed_keys)}: {REWRITE_HINT}"
            )
        return suite

    def save(self, path: Path) -> None:
        """Writes the file. Raises OSError: it cannot be written, or something else is there."""
        fields = {key: value for key, value in vars(self).items() if key != "suites"}
        head = {"chaoslab": FORMAT, "baseline": VERSION, **fields}
        suites = ",\n".join(_render_suite(suite) for suite in self.suites.values())
        write_file(f'{json.dumps(head)[:-1]}, "suites": [\n{suites}\n]}}\n', path)

    @classmethod
    def read(cls, path: Path) -> "Baseline":
        """The baseline of a file. Raises ScenarioError: there is none, or it is no baseline."""
        try:
            content = read_json(path)
            if content["baseline"] != VERSION:
                raise ScenarioError(f"{path} is a baseline of another form: {REWRITE_HINT}")
            suites = [_parse_suite(suite) for suite in content["suites"]]
            baseline = cls(
                **{key: str(content[key]) for key in HEAD_KEYS}, suites={suite.name: suite for suite in suites}
            )
            # Raises here and not when its age is told.
            datetime.fromisoformat(baseline.date)
        except Unreadable as error:
            hint = ": --write makes one" if error.missing else ""
            raise ScenarioError(f"the baseline {path} {error}{hint}") from None
        except ScenarioError:  # a ValueError too
            raise
        except (LookupError, TypeError, ValueError, AttributeError):
            raise ScenarioError(f"{path} is no baseline of chaoslab gate: --write makes one") from None
        return baseline


VERSION = 2
"""The form of the file. 2: a trial says if all was done as asked, and if it met a fault."""
HEAD_KEYS = ("lab", "python", "revision", "date")
REWRITE_HINT = "--write makes a new one"


def digest_suite_keys(scenario: Scenario) -> dict[str, str]:
    """A digest of each key in SUITE."""
    plain = scenario.spec.model_dump(mode="json")
    return {key: hash_value(plain.get(key))[:8] for key in SUITE_KEYS}


def _python_version() -> str:
    return ".".join(platform.python_version_tuple()[:2])


def _render_suite(suite: Suite) -> str:
    head = json.dumps({"name": suite.name, "seed": suite.seed, "parts": suite.parts})
    numbered_rows = ({"number": number, **_drop_default_fields(side)} for number, side in suite.rows.items())
    rows = ",\n".join(f"  {json.dumps(row, allow_nan=False)}" for row in numbered_rows)
    return f' {head[:-1]}, "trials": [\n{rows}\n ]}}'


def _drop_default_fields(side: Side) -> dict[str, Any]:
    """The side without what is as it is by default."""
    always = ("well", "outcome", "why", "calls", "seconds", "harm", "done", "met")
    usual = Side(None, "", "", 0, 0.0)
    return {key: value for key, value in side.to_json_values().items() if key in always or value != getattr(usual, key)}


def _parse_suite(plain: dict[str, Any]) -> Suite:
    rows = {
        int(row["number"]): Side.from_json_values({k: v for k, v in row.items() if k != "number"})
        for row in plain["trials"]
    }
    if [*rows] != [*range(1, len(rows) + 1)]:
        raise ValueError("the trials are not numbered from 1")
    return Suite(str(plain["name"]), int(plain["seed"]), dict(plain["parts"]), rows)
