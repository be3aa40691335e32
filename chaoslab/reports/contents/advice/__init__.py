"""Advice on an agent, from the evidence of a run alone. A rule is a public function of a module here, as `hung(seen)`.
Each piece of advice names the trials that show it and how many did, with the interval; without such a trial there is
none. It tells what happened together, which proves no cause."""

import pkgutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from importlib import import_module

from chaoslab.analysis.measures.intervals import Rate, rate
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.guard import guarded
from chaoslab.analysis.verdict.ledger import Kind
from chaoslab.analysis.verdict.standing import Standing
from chaoslab.analysis.verdict.table import Outcome
from chaoslab.analysis.verdict.traits import layer, unusable
from chaoslab.base.identity import canonical
from chaoslab.core.events import CallFinished, CallStarted, FaultWitnessed
from chaoslab.record.history import History, Place
from chaoslab.reports.contents.attempts import Again, tried_again
from chaoslab.reports.contents.rows import Row
from chaoslab.reports.page import count


@dataclass(frozen=True)
class Advice:
    """One piece of advice. `seen`: the observation; `do`: the remedy; `size`: the share of the trials concerned.
    `trials`: those that show it. `of_run`: it is about the run and not about the agent, so it comes after the rest.
    `of_harm`: who had followed it would not have done harm in these trials, so it comes first."""

    seen: str
    do: str
    size: Rate
    trials: tuple[str, ...]
    of_run: bool = False
    of_harm: bool = False


@dataclass(frozen=True)
class Seen:
    """The evidence that rules read."""

    history: History
    report: RunReport
    rows: Sequence[Row]

    @cached_property
    def hit(self) -> dict[Place, list[str]]:
        """The faults that were witnessed at each attempt."""
        found: dict[Place, list[str]] = {}
        for _, event, at in self.history.placed(FaultWitnessed):
            found.setdefault(at, []).append(event.fault)
        return found

    def hit_at(self, attempts: Iterable[tuple[str | None, CallFinished]]) -> set[tuple[str | None, str]]:
        """Each of these trials with each fault that was witnessed at its attempt."""
        return {
            (trial, fault)
            for trial, call in attempts
            for fault in self.hit.get((trial, call.target, call.request, call.attempt), ())
        }

    @cached_property
    def failed(self) -> set[tuple[str | None, str]]:
        """The trials in which an attempt failed, or had an answer that its caller cannot use, with each fault that was
        witnessed at it."""
        return self.hit_at(
            (at[0], call)
            for _, call, at in self.history.placed(CallFinished)
            if at not in self.history.given_up and (not call.ok or any(map(unusable, self.hit.get(at, ()))))
        )

    @cached_property
    def again(self) -> list[Again]:
        """Every further attempt at a request whose attempt before it failed."""
        return tried_again(self.history)

    @cached_property
    def judged(self) -> list[Row]:
        """The trials that allow a conclusion."""
        return [row for row in self.rows if row.standing is not Standing.OPEN]

    def short(self, row: Row) -> bool:
        """True if the trial allows a conclusion, and either did not end well or its agent could not do all."""
        return row.standing is Standing.BAD or (row.standing is Standing.WELL and row.outcome is Outcome.DEGRADED)

    def misled(self, row: Row) -> bool:
        """True if the trial ended with an answer that claims what is not so, or with harm."""
        return row.outcome in (Outcome.WRONG, Outcome.FALSE_SUCCESS, Outcome.HARM)

    def amiss(self, row: Row) -> bool:
        """True if something is missing or has another value, in the answer, an effect or the end state."""
        return not {Kind.ALTERED, Kind.STATE, Kind.LOST, Kind.FACT, Kind.VALUE}.isdisjoint(kinds(row))

    def taken(self, of: Callable[[str], bool]) -> set[tuple[str | None, str]]:
        """The trials with each of these faults that hit the last attempt at some request, which the caller took for
        right: none after which the same call was made again. A reply in parts counts also if it broke off, since its
        parts were there to be used, and one with nothing in it, which its caller may not have looked at."""
        anew = self._asked_anew
        last = {(record.trial, call.target, call.request): call for record, call in self.history.of(CallFinished)}
        found = set()
        for record, event in self.history.of(FaultWitnessed):
            call = last.get((record.trial, event.target, event.request)) if of(event.fault) else None
            if (record.trial, event.target, event.request) in anew:
                continue
            if call is None or call.attempt != event.attempt:
                continue
            of_success = call.status is not None and call.status < 400
            if call.ok or layer(event.fault) == "stream" or (of_success and unusable(event.fault)):
                found.add((record.trial, event.fault))
        return found

    @cached_property
    def _asked_anew(self) -> set[tuple[str | None, str, int]]:
        """The requests after which the same call was made again as another request, since they had been answered."""
        found: set[tuple[str | None, str, int]] = set()
        last: dict[tuple[str | None, str, str], int] = {}
        for record, event in self.history.of(CallStarted):
            wanted = (record.trial, event.target, canonical([event.tool, event.arguments]))
            if (before := last.get(wanted, event.request)) < event.request:
                found.add((record.trial, event.target, before))
            last[wanted] = event.request
        return found

    def beside_faults(
        self, shows: Callable[[Row], bool], remedy: str, text: str, *, of: Callable[[str], bool] = lambda _: True,
        at: Callable[[Row, str], bool] = lambda _row, _target: False,
        there: Callable[[Row, str], bool] = lambda _row, _fault: True, of_harm: bool = False,
    ) -> list[Advice]:  # fmt: skip
        """Advice on the fault whose trials show it most often beyond the share of all trials, so that a frequent fault
        does not stand for a rare one that goes with it; none if no trial that met a fault shows it.

        `text`: the observation, in which `{fault}` stands for the fault and `{size}` for "3 of 12 judged trials".
        `of`: the faults that are considered. `at`: of faults that are shown alike, those at such a target come first.
        `there`: the trial shows it of this fault. `of_harm`: see `Advice`. Only trials that allow a conclusion count.
        """
        found: list[tuple[int, Advice]] = []
        usual = sum(map(shows, self.judged)) / max(1, len(self.judged))
        for name in sorted({fault for row in self.judged for fault, _ in row.met if of(fault)}):
            met = [row for row in self.judged if any(fault == name for fault, _ in row.met)]
            shown = [row for row in met if shows(row) and there(row, name)]
            near = sum(any(fault == name and at(row, target) for fault, target in row.met) for row in shown)
            size = rate(len(shown), len(met))
            if shown and size:
                said = text.format(
                    fault=name.replace("{", "{{"), size=f"{size.count} of {count(size.total, 'judged trial')}"
                )
                found.append((near, Advice(said, remedy, size, tuple(row.trial for row in shown), of_harm=of_harm)))

        def place(one: tuple[int, Advice]) -> tuple[float, int, int, float]:
            near, size = one[0], one[1].size
            return -round(size.count - usual * size.total, 6), -size.count, -near, -size.value

        return [one for _, one in sorted(found, key=place)[:1]]


def advice(history: History, report: RunReport, rows: Sequence[Row]) -> tuple[Advice, ...]:
    """All advice that the run gives: first on the agent, then on the run. First comes what would have prevented harm,
    then that whose trials did harm most often beyond the share of all trials, then that whose trials ended badly so,
    then the most frequent. A rule that fails gives none."""
    seen = Seen(history, report, rows)
    harmed = {row.trial for row in rows if row.harm}
    bad = {row.trial for row in rows if row.standing is Standing.BAD}
    found: list[Advice] = []
    for _, rule in sorted(rules().items()):
        found += guarded(partial(rule, seen), lambda _: [])

    def beyond(trials: set[str], one: Advice) -> float:
        return round(len(trials.intersection(one.trials)) - len(trials) / max(1, len(rows)) * len(one.trials), 6)

    def place(one: Advice) -> tuple[bool, bool, float, float, int]:
        return one.of_run, not one.of_harm, -max(0.0, beyond(harmed, one)), -beyond(bad, one), -one.size.count

    return tuple(sorted(found, key=place))


@cache
def rules() -> dict[str, Callable[[Seen], list[Advice]]]:
    """The rules by name."""
    found: dict[str, Callable[[Seen], list[Advice]]] = {}
    for file in pkgutil.iter_modules(__path__, f"{__name__}."):
        public = {name: each for name, each in vars(import_module(file.name)).items() if not name.startswith("_")}
        found |= {name: each for name, each in public.items() if getattr(each, "__module__", "") == file.name}
    return found


def kinds(row: Row) -> set[str]:
    """The kinds of the findings behind the trial's verdict."""
    return {one.kind for one in row.evidence}
