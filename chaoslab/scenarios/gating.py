"""`chaoslab gate`: the trials of scenarios compared with those of a baseline, until it is shown if they got worse.
It holds a change to a baseline of the same trials. The requirements on one run alone, such as --fail-on, are those of
`reports/gate.py`."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from chaoslab.analysis.verdict.standing import OPEN_MAX
from chaoslab.base.clock import system
from chaoslab.base.commandline import GATE_FAILED, PROVES_NOTHING
from chaoslab.base.dice import Dice
from chaoslab.record.provenance import read_git_commit
from chaoslab.record.rulings import RulingState
from chaoslab.reports.formats.markdown import format_code
from chaoslab.scenarios.baseline import Suite
from chaoslab.scenarios.comparing import compare_sides, run_next_pair_batch
from chaoslab.scenarios.junit import Case
from chaoslab.scenarios.located import ScenarioError
from chaoslab.scenarios.revisions import SideWork, open_revision_side
from chaoslab.scenarios.scenario import Scenario
from chaoslab.scenarios.sides import ComparisonSide, KeptTrials, ScenarioSide
from chaoslab.scenarios.tell import make_trial_rerun_command
from chaoslab.search.compared import Comparison, describe_figure
from chaoslab.search.pairs import FEW, FIGURES, LEAST, OPEN, WORSE, Pair

SHOWN, COMMANDS = 8, 3
"""The most trials that a line names, and the most for which a command is told."""
STATES = {0: RulingState.PASSED, GATE_FAILED: RulingState.FAILED, PROVES_NOTHING: RulingState.INVALID}


@dataclass
class GatedScenario:
    """One scenario under the gate. `given`: the options on which its trials depend. `took_s`: the real time that they
    took, in seconds."""

    scenario: Scenario
    suite: Suite
    new: ComparisonSide
    found: Comparison
    given: Sequence[str] = ()
    took_s: float = 0.0
    repeated: Comparison | None = None
    """The comparison on fresh seeds on both sides, of a scenario that seemed to be worse."""
    alone: str = ""
    """The reason why there is none."""

    @property
    def comparison(self) -> Comparison:
        """The comparison that decides."""
        return self.found if self.repeated is None else self.repeated

    @property
    def untried_count(self) -> int:
        """The trials of the baseline that were not looked at."""
        return len(self.suite.rows) - len(self.found.pairs)

    def compute_priority(self, budget_left: int) -> tuple[bool, bool, float]:
        """The place among scenarios that wait for trials, of which there may be so many: first those without any, last
        those that they could not decide, and else by the evidence for worse."""
        enough = len(self.found.pairs) >= LEAST
        hopeless = enough and self.found.is_worse_unreachable(min(budget_left, self.untried_count))
        return not self.found.pairs, not hopeless, self.found.compute_evidence(WORSE)

    @property
    def newly_harmed_trials(self) -> list[int]:
        """The trials with harm that the baseline does not have."""
        return [pair.number for pair in self.found.pairs if pair.harm_change == WORSE]

    @property
    def open_pairs(self) -> list[Pair]:
        """The pairs of which it is not known on a side if they are well."""
        return [pair for pair in self.found.pairs if None in pair.get_values_on_both_sides("well")]

    @property
    def undecided_reason(self) -> str:
        """The reason why too little is known; empty if it is enough."""
        if self.comparison.verdict == FEW:
            return f"{len(self.comparison.pairs)} pairs are too few"
        return self.comparison.open_reason

    @property
    def rerun_commands(self) -> list[str]:
        """The commands that show trials which got worse."""
        numbers = {pair.number for pair in self.found.pairs if pair.change_kind == WORSE} | {*self.newly_harmed_trials}
        return [make_trial_rerun_command(self.scenario, number, self.given) for number in sorted(numbers)[:COMMANDS]]


@dataclass
class ScenarioGate:
    """The scenarios under a gate, and its ruling. `harm_budget`: the trials with harm that the baseline does not have,
    of all together, that are let pass."""

    harm_budget: int
    scenarios: list[GatedScenario]
    notes: list[str] = field(default_factory=list)

    @property
    def new_harm_count(self) -> int:
        return sum(len(gated.newly_harmed_trials) for gated in self.scenarios)

    @property
    def worse_scenarios(self) -> list[GatedScenario]:
        return [gated for gated in self.scenarios if gated.comparison.verdict == WORSE]

    @property
    def undecided_scenarios(self) -> list[GatedScenario]:
        return [gated for gated in self.scenarios if gated.comparison.verdict in (FEW, OPEN)]

    @property
    def has_failed(self) -> bool:
        return bool(self.worse_scenarios) or self.new_harm_count > self.harm_budget

    @property
    def exit_code(self) -> int:
        """The exit code of the command."""
        return GATE_FAILED if self.has_failed else PROVES_NOTHING if self.undecided_scenarios else 0

    @property
    def summary_line(self) -> str:
        """The ruling in one line."""
        pairs = sum(len(gated.found.pairs) for gated in self.scenarios)
        if not self.exit_code:
            open_ = sum(len(gated.open_pairs) for gated in self.scenarios)
            suffix = f", of which {open_} {'is' if open_ == 1 else 'are'} open" if open_ else ""
            seemed = [gated.scenario.name for gated in self.scenarios if gated.repeated is not None]
            suffix += f"; worse at first, and not on fresh seeds: {', '.join(seemed)}" if seemed else ""
            return f"gate passed: no scenario got worse, in {pairs} trials{suffix}"
        findings = [f"{gated.scenario.name} got worse{' on fresh seeds too' if gated.repeated is not None else ''}"
                for gated in self.worse_scenarios]  # fmt: skip
        if self.new_harm_count > self.harm_budget:
            named = [f"{gated.scenario.name} {', '.join(map(str, gated.newly_harmed_trials[:SHOWN]))}"
                     for gated in self.scenarios if gated.newly_harmed_trials]  # fmt: skip
            findings.append(
                f"{self.new_harm_count} trials did harm that did none ({self.harm_budget} allowed): {'; '.join(named)}"
            )
        if not findings:
            findings = [f"{gated.scenario.name}: {gated.undecided_reason}" for gated in self.undecided_scenarios]
        return f"gate {'FAILED' if self.has_failed else 'proves nothing'}: {'; '.join(findings)}"

    def render_gate_lines(self) -> list[str]:
        """The gate in lines."""
        lines = []
        for gated in self.scenarios:
            lines += [
                gated.scenario.name,
                *gated.found.render_comparison_lines(),
                *(f"  see {command}" for command in gated.rerun_commands),
            ]
            if gated.repeated is not None:
                lines += [
                    f"  {text}"
                    for text in (f"rechecked: {gated.repeated.name}", *gated.repeated.render_comparison_lines(1))
                ]
            elif gated.alone:
                lines.append(f"  not rechecked on fresh seeds, so one verdict decides: {gated.alone}")
        return [*lines, *self.notes, self.summary_line]


def make_gated_scenarios(
    scenarios: Sequence[tuple[Scenario, Suite]],
    alpha: float,
    *,
    jobs: int = 1,
    given: Sequence[str] = (),
    open_max: float = OPEN_MAX,
) -> list[GatedScenario]:
    """The scenarios, each with its part of alpha. `given`: the options on which their trials depend. `open_max`: the
    share of pairs of each that may be open."""
    # Bonferroni's: one false alarm in all scenarios together.
    own_alpha = alpha / len(scenarios)
    return [
        GatedScenario(
            scenario, suite, ScenarioSide(scenario, suite.seed, jobs), Comparison(own_alpha, open_max=open_max), given
        )
        for scenario, suite in scenarios
    ]


def run_gate(
    scenario_gate: ScenarioGate,
    *,
    trials: int,
    seconds: float | None = None,
    tell: Callable[[GatedScenario], object] = lambda _: None,
) -> None:
    """Tries the scenarios until each is decided. `trials`, `seconds`: the budget of all together; the next batch goes
    to the undecided scenario with the most evidence that it got worse. Trials that cannot decide come last, since
    they may still do harm. Raises ScenarioError: something of the user's cannot be imported or does not fit."""
    began_s, remaining = system.monotonic(), trials
    while remaining > 0:
        took_s = system.monotonic() - began_s
        undecided = [gated for gated in scenario_gate.scenarios if gated.untried_count and not gated.found.is_decided
                 and len(gated.newly_harmed_trials) <= scenario_gate.harm_budget]  # fmt: skip
        if not undecided or (seconds is not None and took_s >= seconds):
            break
        gated = max(undecided, key=lambda candidate: candidate.compute_priority(remaining))
        pairs_before = len(gated.found.pairs)
        run_next_pair_batch(
            gated.found,
            KeptTrials(gated.suite.rows),
            gated.new,
            most=pairs_before + min(remaining, gated.untried_count),
        )
        gated.took_s += system.monotonic() - began_s - took_s
        remaining -= len(gated.found.pairs) - pairs_before
        tell(gated)


def recheck_worse_scenarios(
    scenario_gate: ScenarioGate, base: str, changed: Sequence[str] = (), *, jobs: int = 1
) -> None:
    """Compares each scenario that seems to be worse once more, both sides on fresh seeds: a baseline is drawn once, and
    one that was lucky would let each later gate fail. `base`: the baseline's revision, in whose work tree its side
    runs. The seed is that of the commit of now, so that the same one is asked the same."""
    for gated in scenario_gate.worse_scenarios:
        # By names: whoever asks again at this commit gets the same trials.
        dice = Dice(
            gated.suite.seed, "rechecked", base, read_git_commit(Path(gated.scenario.file).parent), gated.scenario.name
        )
        # Named dice: the same commit is asked the same question, so the ruling can be repeated.
        seed = dice.make_generator().getrandbits(32)
        work = SideWork(Path(gated.scenario.file), changed, gated.scenario.name, seed, jobs)
        name = f"seed {seed} on both sides, the base as revision {base} has it"
        try:
            # Without a revision its code is not at hand.
            if not base:
                raise ScenarioError("the baseline names no revision")
            with open_revision_side(work, base) as side:
                new = ScenarioSide(gated.scenario, seed, jobs)
                gated.repeated = compare_sides(
                    side,
                    new,
                    trials=len(gated.suite.rows),
                    alpha=gated.found.alpha,
                    open_max=gated.found.open_max,
                    name=name,
                )
        # The first comparison decides then, and the gate says why.
        except ScenarioError as error:
            gated.alone = str(error)


def build_junit_cases(scenario_gate: ScenarioGate) -> list[Case]:
    """The gate as the cases of JUnit, a scenario each."""
    case_list = []
    for gated in scenario_gate.scenarios:
        # Harm is let pass up to the budget, whatever the scenario.
        harmed = bool(gated.newly_harmed_trials) and scenario_gate.new_harm_count > scenario_gate.harm_budget
        failed = harmed or gated in scenario_gate.worse_scenarios
        state = (
            RulingState.FAILED
            if failed
            else RulingState.INVALID
            if gated in scenario_gate.undecided_scenarios and scenario_gate.exit_code
            else RulingState.PASSED
        )
        properties = {
            "pairs": len(gated.found.pairs), "worse": gated.found.count_changed_pairs(WORSE),
            "open": len(gated.open_pairs), "new_harm": len(gated.newly_harmed_trials),
        }  # fmt: skip
        text = "\n".join(gated.comparison.render_comparison_lines())
        message = f"new harm in trials {gated.newly_harmed_trials[:SHOWN]}\n{text}" if harmed else text
        group = (gated.scenario.file, gated.scenario.name)
        case_list.append(Case(group, "chaoslab gate", *group, gated.took_s, state, message, properties))
    return case_list


def render_markdown(scenario_gate: ScenarioGate) -> str:
    """The gate for a pull request."""
    mark = {0: "✅", GATE_FAILED: "❌", PROVES_NOTHING: "❔"}[scenario_gate.exit_code]
    head = ["scenario", "verdict", "pairs", *FIGURES.values(), "open", "new harm"]
    lines = [f"## {mark} {scenario_gate.summary_line}", "", f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for gated in scenario_gate.scenarios:
        ruling = gated.comparison
        figure_cells = [
            describe_figure(ruling.figures[name]).partition(" pairs")[0].removeprefix(figure_words).strip()
            if ruling.figures[name].has_known_trials
            else "not stated"
            for name, figure_words in FIGURES.items()
        ]
        cells = [
            format_code(gated.scenario.name),
            ruling.verdict,
            str(len(ruling.pairs)),
            *figure_cells,
            str(len(gated.open_pairs)),
            str(len(gated.newly_harmed_trials)),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", *(f"- {format_code(gated.scenario.name)}: {describe_figure(figure)}"
                    for gated in scenario_gate.scenarios for figure in gated.found.stated_figures)]  # fmt: skip
    for gated in scenario_gate.scenarios:
        if gated.repeated or gated.alone:
            reasons = (
                [gated.comparison.name, *gated.comparison.render_comparison_lines()[:1]]
                if gated.repeated
                else [gated.alone]
            )
            asked_text = "rechecked" if gated.repeated else "not rechecked"
            lines.append(f"- {format_code(gated.scenario.name)}, {asked_text}: {'; '.join(reasons)}")
    lines += [f"- {note}" for note in scenario_gate.notes]
    for gated in scenario_gate.scenarios:
        worse = [pair for pair in gated.found.pairs if WORSE in (pair.change_kind, pair.harm_change)]
        if worse or gated.open_pairs:
            lines += ["", f"### {format_code(gated.scenario.name)}"]
        if worse:
            lines += ["", *_render_pairs(gated, worse)]
        if gated.open_pairs:
            suffix = ", those above included" if any(pair in worse for pair in gated.open_pairs) else ""
            lines += ["", f"{len(gated.open_pairs)} of {len(gated.found.pairs)} pairs are open{suffix}:", ""]
            lines += _render_pairs(gated, [pair for pair in gated.open_pairs if pair not in worse])
    return "\n".join(lines) + "\n"


def _render_pairs(gated: GatedScenario, pairs: list[Pair]) -> Iterator[str]:
    """The first pairs, the number of the others, and the command that shows the first."""
    for pair in pairs[:SHOWN]:
        reason = pair.base.why if pair.new.well else pair.new.why
        yield f"- trial {pair.number}: {pair.base.outcome} → {pair.new.outcome}: {format_code(reason)}"
    if rest := pairs[SHOWN:]:
        yield f"- … and {len(rest)} more, from trial {rest[0].number} on"
    for pair in pairs[:1]:
        yield f"- {format_code(make_trial_rerun_command(gated.scenario, pair.number, gated.given))}"


def render_workflow_commands(scenario_gate: ScenarioGate) -> list[str]:
    """The gate as commands of a GitHub workflow, one for each scenario that did not pass, and for each note."""
    commands = [f"::warning title=chaoslab gate::{_escape_workflow_command(note)}" for note in scenario_gate.notes]
    for case in build_junit_cases(scenario_gate):
        if case.state is not RulingState.PASSED:
            kind = "error" if case.state is RulingState.FAILED else "warning"
            title = _escape_workflow_command(f"chaoslab gate, {case.name}", ",:")
            location = f"file={_escape_workflow_command(case.classname, ',:')},title={title}"
            commands.append(f"::{kind} {location}::{_escape_workflow_command(case.told.partition(chr(10))[0])}")
    return commands


def _escape_workflow_command(text: str, further_signs: str = "") -> str:
    # As GitHub's runner takes them: % first, or the escapes would be escaped.
    for sign in "%\r\n" + further_signs:
        text = text.replace(sign, f"%{ord(sign):02X}")
    return text
