"""Tells a cause from noise: a failure is tried again on other chance, with its faults and without them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from chaoslab.analysis.verdict.table import Outcome
from chaoslab.execution.exploring import SearchSession
from chaoslab.search.contrast import LOOKS, Contrast, SelfFailure
from chaoslab.search.variation import TriedVariation, Variation

Rerun = Callable[[Sequence[Variation], Sequence[int]], Sequence[TriedVariation]]
"""Runs these variations again, each with the chance of the trial of this number; fewer results if the time is over."""
CHANCES = 10
"""The trials of a single fault that a search looks for failures in where the agent draws, each on other chance. A
failure is confirmed on further ones: those in which it was looked for were chosen by what came of them."""
BY = "again"
"""The strategy of trials that are run again, as `TriedVariation.by` has it."""


class FailureConfirmation:
    """The trials of one search that are run again. An agent that draws no chance of its own, and does the same again,
    is tried once; any other at least `LOOKS[0]` times, each on other chance."""

    def __init__(
        self,
        trials: SearchSession,
        baseline: TriedVariation,
        rerun: Rerun | None = None,
        earlier: Sequence[TriedVariation] = (),
    ) -> None:
        """`calm`: the trial without faults. `again`: runs trials, by default in the session. `before`: those without
        faults that were run to find one that does not fail."""
        self._number, self._again = (
            trials.number,
            rerun or (lambda variations, numbers: _run_variations(trials, variations, numbers)),
        )
        self.noisy = bool(earlier) and not baseline.drew
        """Something that the lab does not control decides: an equal trial ended otherwise."""
        self.calm_drew = baseline.drew
        self.calm: list[TriedVariation] = [*earlier]
        """The trials without faults, on other chance."""
        # The trials without faults first, since each contrast is made beside them.
        if baseline.drew:
            self._run_baselines(LOOKS[0])

    def is_nondeterministic(self, tried: TriedVariation) -> bool:
        """True if more than the faults decides what becomes of such a trial."""
        return self.noisy or self.calm_drew or tried.drew

    def measure_contrast(self, failing: TriedVariation) -> tuple[Contrast, list[TriedVariation]]:
        """The contrast of a failure, and the trials with its faults. Without a trial: the time was over."""
        # One more trial is enough where nothing but the faults decides; if it ends otherwise, something else decided.
        if not self.is_nondeterministic(failing):
            reruns = self._again([failing.variation], [self._number])
            if not reruns or fails_alike(reruns[0], failing):
                return Contrast(len(reruns), len(reruns), 0, len(reruns)), [*reruns]
            self.noisy = True
        tried: list[TriedVariation] = []
        contrast = Contrast(0, 0, 0, 0)
        for look in LOOKS:
            numbers = self._list_trial_numbers(len(tried), look, drew=self.calm_drew or failing.drew)
            tried += self._again([failing.variation] * len(numbers), numbers)
            baselines = self._run_baselines(look)
            contrast = Contrast(
                sum(fails_alike(trial, failing) for trial in tried),
                len(tried),
                sum(fails_alike(trial, failing) for trial in baselines),
                len(baselines),
            )
            # Fewer trials than were asked for: the time of the search is over, and a further look would be as short.
            if contrast.needs_no_more_trials or len(tried) < look or len(baselines) < look:
                break
        if not contrast.holds:  # it may be what happens by itself, now and then
            self._run_baselines(LOOKS[-1])
        return contrast, tried

    def _list_trial_numbers(self, since: int, look: int, *, drew: bool) -> list[int]:
        """The numbers of further trials: of other chance; the same where none is drawn that the lab knows of, since the
        dice of the faults would be others too."""
        return [self._number + (CHANCES + n if drew else 0) for n in range(since, look)]

    def _run_baselines(self, look: int) -> list[TriedVariation]:
        numbers = self._list_trial_numbers(len(self.calm), look, drew=self.calm_drew)
        if numbers:
            self.calm += self._again([Variation()] * len(numbers), numbers)
        return self.calm[:look]

    @property
    def baseline_failures(self) -> list[SelfFailure]:
        """The failures that happened without faults."""
        failed = {trial.kind: trial for trial in self.calm if trial.failed}
        counts = Counter(trial.kind for trial in self.calm if trial.failed)
        return [
            SelfFailure(trial.outcome, trial.why, kind, counts[kind], len(self.calm)) for kind, trial in failed.items()
        ]


def _run_variations(
    trials: SearchSession, variations: Sequence[Variation], numbers: Sequence[int]
) -> list[TriedVariation]:
    return [tried for tried, _ in trials.assess_variations(variations, BY, numbers=numbers)]


def fails_alike(tried: TriedVariation, failing: TriedVariation) -> bool:
    """True if it fails like the other."""
    return tried.failed and tried.kind == failing.kind


def make_unconfirmed_result(
    failing: TriedVariation, reruns: Sequence[TriedVariation], contrast: Contrast
) -> TriedVariation:
    """The result of a trial whose faults are not shown to bring its failure about: that of an equal one which did not
    fail. Unknown where it never failed without faults, since then they may bring it about, now and then."""
    # A void trial proves nothing, so it cannot stand for one that passed.
    passed = next((trial for trial in reruns if not trial.failed and not trial.is_inconclusive), None)
    survived = replace(failing, failed=False) if passed is None else passed
    if not contrast.calm_failed:
        survived = replace(survived, outcome=str(Outcome.UNKNOWN), why=f"it failed, perhaps by chance: {contrast}")
    return replace(survived, number=failing.number, by=failing.by)
