"""Compares two runs by their logs: trials of the same prompt and the same repetition are a pair."""

from collections import defaultdict
from collections.abc import Iterator
from functools import partial

from chaoslab.analysis.measures.trace_diff import Story, tell
from chaoslab.analysis.verdict.standing import Standing
from chaoslab.reports.changes import differences, keyed
from chaoslab.reports.contents import Contents
from chaoslab.reports.page import count
from chaoslab.reports.places import read
from chaoslab.scenarios.located import ScenarioError
from chaoslab.search.compared import Comparison
from chaoslab.search.pairs import Pair, Side

WELL = {Standing.WELL: True, Standing.BAD: False, Standing.OPEN: None}


def of_runs(base: str, new: str, *, alpha: float) -> Comparison:
    """The comparison of two runs, named as for `chaoslab show`. All their pairs are looked at. Raises LookupError:
    there is no such run; ScenarioError: they have other seeds, plans or prompts, so their trials are not the same."""
    one, other = (Contents.read(name, where=name) for name in (base, new))
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
    sides = [dict(_sides(each, name)) for each, name in ((one, base), (other, new))]
    for number, key in enumerate(both, 1):
        found.add(Pair(number, sides[0][before[key].trial], sides[1][after[key].trial], key[0]))
    return found


def _sides(run: Contents, name: str) -> Iterator[tuple[str, Side]]:
    """The side of each trial, by its key."""
    report = run.report
    figures, quality = report.figures.value.by_key, report.recovery_quality.value
    spells = defaultdict[str, list[tuple[float, bool, bool]]](list)
    for one in report.recovery.value.incidents:
        spells[one.trial].append((one.duration_s, one.recovered, one.cut))

    for row in run.all_rows:
        of = figures[row.trial]
        yield row.trial, Side(
            WELL[row.standing], report.verdicts[row.trial].name, row.in_words, row.calls, row.seconds or 0.0, of.tokens,
            bool(row.harm), None if of.unpriced else float(of.usd),
            quality.each.get(row.trial) if quality and row.standing is not Standing.OPEN else None,
            tuple(spells[row.trial]), not row.certain, row.prompt, story=partial(_story, name, row.trial),
        )  # fmt: skip


def _story(name: str, trial: str) -> Story:
    return tell(read(name, trials=[trial]).records, trial)
