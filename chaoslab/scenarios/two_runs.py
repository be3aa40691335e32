"""Compares two runs by their logs: trials of the same prompt and the same repetition are a pair."""

from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from typing import Any

from chaoslab.analysis.measures.incidents import incidents
from chaoslab.analysis.measures.recovery_quality import of_trial, weighted
from chaoslab.analysis.measures.trace_diff import tell
from chaoslab.analysis.measures.trials import Trials
from chaoslab.analysis.verdict.standing import Standing
from chaoslab.core.events import PromptStarted, Usage
from chaoslab.reports.changes import differences, keyed
from chaoslab.reports.contents import Contents
from chaoslab.reports.contents.rows import Row
from chaoslab.reports.folder import read
from chaoslab.reports.page import count
from chaoslab.scenarios.located import ScenarioError
from chaoslab.search.compared import Comparison
from chaoslab.search.pairs import Pair, Side

WELL = {Standing.WELL: True, Standing.BAD: False, Standing.OPEN: None}


def of_runs(base: str, new: str, *, alpha: float) -> Comparison:
    """The comparison of two runs, named as for `chaoslab show`. All their pairs are looked at. Raises LookupError:
    there is no such run; ScenarioError: they have other seeds, plans or prompts, so their trials are not the same."""
    one, other = (Contents.of(read(name), where=name) for name in (base, new))
    begun = [each.report.started for each in (one, other)]
    for what in ("seed", "plan"):
        if len({str(getattr(each, what, None)) for each in begun}) > 1:
            said = "faults" if what == "plan" else what
            raise ScenarioError(f"{base} and {new} differ in {said}, so their trials cannot be paired")
    before, after = keyed(one), keyed(other)
    both = [key for key in before if key in after]
    if not both:
        raise ScenarioError(f"{base} and {new} differ in prompts: no trial of one has its pair in the other")
    found = Comparison(alpha, notes=[text.rstrip(".") for text in differences(*begun)])
    if alone := len(before) + len(after) - 2 * len(both):
        found.notes.append(f"{count(alone, 'trial')} of one run alone, which count for nothing")
    sides = [dict(_sides(each)) for each in (one, other)]
    for number, key in enumerate(both, 1):
        found.add(Pair(number, sides[0][before[key].trial], sides[1][after[key].trial], key[0]))
    return found


def _sides(run: Contents) -> Iterator[tuple[str, Side]]:
    """The side of each trial, by its key."""
    history, verdicts = run.history, run.report.verdicts
    tokens, dollars = defaultdict[Any, int](int), defaultdict[Any, float | None](float)
    for record, used in history.of(Usage):
        tokens[record.trial] += used.prompt_tokens + used.completion_tokens
        known = dollars[record.trial]
        dollars[record.trial] = None if known is None or used.cost_usd is None else known + used.cost_usd
    spells = defaultdict[str, list[tuple[float, bool, bool]]](list)
    for one in incidents(history):
        spells[one.trial].append((one.duration_s, one.recovered, one.cut))
    started = {record.trial: event for record, event in history.of(PromptStarted)}
    trials = Trials.of(history, {trial: str(verdict.outcome) for trial, verdict in verdicts.items()})
    beside = dict(trials.beside_calm)

    def quality(row: Row) -> float | None:
        if not row.met or row.standing is Standing.OPEN or row.trial not in started:
            return None
        return weighted(of_trial(verdicts[row.trial], started[row.trial], beside.get(row.trial)))

    for row in run.rows:
        yield row.trial, Side(
            WELL[row.standing], verdicts[row.trial].name, row.told, row.calls, row.seconds or 0.0, tokens[row.trial],
            bool(row.harm), dollars[row.trial], quality(row), tuple(spells[row.trial]), not row.certain, row.prompt,
            story=partial(tell, history.records, row.trial),
        )  # fmt: skip
