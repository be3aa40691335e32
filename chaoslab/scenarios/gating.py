"""`chaoslab gate`: the trials of scenarios compared with those of a baseline, until it is shown if they became worse.
It holds a change to a baseline of the same trials. The requirements on one run alone, such as --fail-on, are those of
`reports/gate.py`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from chaoslab.analysis.verdict.standing import OPEN_MAX
from chaoslab.base.clock import system
from chaoslab.base.commandline import GATE_FAILED, PROVES_NOTHING
from chaoslab.base.dice import Dice
from chaoslab.record.provenance import revision as revision_of
from chaoslab.record.rulings import RulingState
from chaoslab.reports.formats.markdown import code
from chaoslab.scenarios.baseline import Suite
from chaoslab.scenarios.comparing import advance, paired
from chaoslab.scenarios.junit import Case
from chaoslab.scenarios.located import ScenarioError
from chaoslab.scenarios.revisions import SideWork, revision
from chaoslab.scenarios.scenario import Scenario
from chaoslab.scenarios.sides import KeptTrials, OfScenario, Sides
from chaoslab.scenarios.tell import of_trial
from chaoslab.search.compared import Comparison, figure_text
from chaoslab.search.pairs import FEW, FIGURES, LEAST, OPEN, WORSE, Pair

SHOWN, COMMANDS = 8, 3
"""The most trials that a line names, and the most for which a command is told."""
STATES = {0: RulingState.PASSED, GATE_FAILED: RulingState.FAILED, PROVES_NOTHING: RulingState.INVALID}


@dataclass
class Gated:
    """One scenario under the gate. `given`: the options on which its trials depend. `took_s`: the real time that they
    took, in seconds."""

    scenario: Scenario
    suite: Suite
    new: Sides
    found: Comparison
    given: Sequence[str] = ()
    took_s: float = 0.0
    repeated: Comparison | None = None
    """The comparison on fresh seeds on both sides, of a scenario that seemed to be worse."""
    alone: str = ""
    """The reason why there is none."""

    @property
    def ruling(self) -> Comparison:
        """The comparison that decides."""
        return self.found if self.repeated is None else self.repeated

    @property
    def left(self) -> int:
        """The trials of the baseline that were not looked at."""
        return len(self.suite.rows) - len(self.found.pairs)

    def rank(self, left: int) -> tuple[bool, bool, float]:
        """The place among scenarios that wait for trials, of which there may be so many: first those without any, last
        those that they could not decide, and else by the evidence for worse."""
        enough = len(self.found.pairs) >= LEAST
        hopeless = enough and self.found.hopeless(min(left, self.left))
        return not self.found.pairs, not hopeless, self.found.evidence(WORSE)

    @property
    def harmed(self) -> list[int]:
        """The trials with harm that the baseline does not have."""
        return [each.number for each in self.found.pairs if each.harm == WORSE]

    @property
    def open(self) -> list[Pair]:
        """The pairs of which it is not known on a side if they are well."""
        return [each for each in self.found.pairs if None in each.states("well")]

    @property
    def why_few(self) -> str:
        """The reason why too little is known; empty if it is enough."""
        if self.ruling.verdict == FEW:
            return f"{len(self.ruling.pairs)} pairs are too few"
        return self.ruling.why_open

    @property
    def again(self) -> list[str]:
        """The commands that show trials which became worse."""
        numbers = {each.number for each in self.found.pairs if each.change == WORSE} | {*self.harmed}
        return [of_trial(self.scenario, number, self.given) for number in sorted(numbers)[:COMMANDS]]


@dataclass
class ScenarioGate:
    """The scenarios under a gate, and its ruling. `harm_budget`: the trials with harm that the baseline does not have,
    of all together, that are let pass."""

    harm_budget: int
    scenarios: list[Gated]
    notes: list[str] = field(default_factory=list)

    @property
    def harmed(self) -> int:
        return sum(len(each.harmed) for each in self.scenarios)

    @property
    def worse(self) -> list[Gated]:
        return [each for each in self.scenarios if each.ruling.verdict == WORSE]

    @property
    def few(self) -> list[Gated]:
        return [each for each in self.scenarios if each.ruling.verdict in (FEW, OPEN)]

    @property
    def failed(self) -> bool:
        return bool(self.worse) or self.harmed > self.harm_budget

    @property
    def code(self) -> int:
        """The exit code of the command."""
        return GATE_FAILED if self.failed else PROVES_NOTHING if self.few else 0

    @property
    def line(self) -> str:
        """The ruling in one line."""
        pairs = sum(len(each.found.pairs) for each in self.scenarios)
        if not self.code:
            open_ = sum(len(each.open) for each in self.scenarios)
            beside = f", of which {open_} are open" if open_ else ""
            seemed = [each.scenario.name for each in self.scenarios if each.repeated is not None]
            beside += f"; worse at first, and not on fresh seeds: {', '.join(seemed)}" if seemed else ""
            return f"gate passed: no scenario became worse, in {pairs} trials{beside}"
        said = [f"{each.scenario.name} became worse{' on fresh seeds too' if each.repeated is not None else ''}"
                for each in self.worse]  # fmt: skip
        if self.harmed > self.harm_budget:
            named = [f"{each.scenario.name} {', '.join(map(str, each.harmed[:SHOWN]))}"
                     for each in self.scenarios if each.harmed]  # fmt: skip
            said.append(f"{self.harmed} trials did harm that did none ({self.harm_budget} allowed): {'; '.join(named)}")
        if not said:
            said = [f"{each.scenario.name}: {each.why_few}" for each in self.few]
        return f"gate {'FAILED' if self.failed else 'proves nothing'}: {'; '.join(said)}"

    def in_words(self) -> list[str]:
        """The gate in lines."""
        lines = []
        for each in self.scenarios:
            lines += [each.scenario.name, *each.found.in_words(), *(f"  see {command}" for command in each.again)]
            if each.repeated is not None:
                lines += [f"  {text}" for text in (f"asked again: {each.repeated.name}", *each.repeated.in_words(1))]
            elif each.alone:
                lines.append(f"  not asked again on fresh seeds, so one verdict decides: {each.alone}")
        return [*lines, *self.notes, self.line]


def under(
    scenarios: Sequence[tuple[Scenario, Suite]], alpha: float, *, jobs: int = 1, given: Sequence[str] = (),
    open_max: float = OPEN_MAX,
) -> list[Gated]:  # fmt: skip
    """The scenarios, each with its part of alpha. `given`: the options on which their trials depend. `open_max`: the
    share of pairs of each that may be open."""
    own = alpha / len(scenarios)
    return [
        Gated(each, suite, OfScenario(each, suite.seed, jobs), Comparison(own, open_max=open_max), given)
        for each, suite in scenarios
    ]


def gate(
    made: ScenarioGate, *, trials: int, seconds: float | None = None, tell: Callable[[Gated], object] = lambda _: None
) -> None:
    """Tries the scenarios until each is decided. `trials`, `seconds`: the budget of all together; the next batch goes
    to the undecided scenario with the most evidence that it became worse. Trials that cannot decide come last, since
    they may still do harm. Raises ScenarioError: something of the user's cannot be imported or does not fit."""
    began_s, left = system.monotonic(), trials
    while left > 0:
        took_s = system.monotonic() - began_s
        open_ = [each for each in made.scenarios if each.left and not each.found.decided
                 and len(each.harmed) <= made.harm_budget]  # fmt: skip
        if not open_ or (seconds is not None and took_s >= seconds):
            break
        each = max(open_, key=lambda one: one.rank(left))
        done = len(each.found.pairs)
        advance(each.found, KeptTrials(each.suite.rows), each.new, most=done + min(left, each.left))
        each.took_s += system.monotonic() - began_s - took_s
        left -= len(each.found.pairs) - done
        tell(each)


def ask_again(made: ScenarioGate, base: str, changed: Sequence[str] = (), *, jobs: int = 1) -> None:
    """Compares each scenario that seems to be worse once more, both sides on fresh seeds: a baseline is drawn once, and
    one that was lucky would let each later gate fail. `base`: the baseline's revision, in whose work tree its side
    runs. The seed is that of the commit of now, so that the same one is asked the same."""
    for each in made.worse:
        dice = Dice(
            each.suite.seed, "asked again", base, revision_of(Path(each.scenario.file).parent), each.scenario.name
        )
        # Named dice: the same commit is asked the same question, so the ruling can be repeated.
        seed = dice.stream().getrandbits(32)
        work = SideWork(Path(each.scenario.file), changed, each.scenario.name, seed, jobs)
        name = f"seed {seed} on both sides, the base as revision {base} has it"
        try:
            if not base:
                raise ScenarioError("the baseline names no revision")
            with revision(work, base) as side:
                new = OfScenario(each.scenario, seed, jobs)
                each.repeated = paired(
                    side, new, trials=len(each.suite.rows), alpha=each.found.alpha, open_max=each.found.open_max,
                    name=name,
                )  # fmt: skip
        except ScenarioError as error:
            each.alone = str(error)


def cases(made: ScenarioGate) -> list[Case]:
    """The gate as the cases of JUnit, a scenario each."""
    found = []
    for each in made.scenarios:
        harmed = bool(each.harmed) and made.harmed > made.harm_budget
        failed = harmed or each in made.worse
        state = (
            RulingState.FAILED
            if failed
            else RulingState.INVALID
            if each in made.few and made.code
            else RulingState.PASSED
        )
        properties = {
            "pairs": len(each.found.pairs), "worse": each.found.count(WORSE), "open": len(each.open),
            "new_harm": len(each.harmed),
        }  # fmt: skip
        text = "\n".join(each.ruling.in_words())
        told = f"new harm in trials {each.harmed[:SHOWN]}\n{text}" if harmed else text
        place = (each.scenario.file, each.scenario.name)
        found.append(Case(place, "chaoslab gate", *place, each.took_s, state, told, properties))
    return found


def markdown(made: ScenarioGate) -> str:
    """The gate for a pull request."""
    mark = {0: "✅", GATE_FAILED: "❌", PROVES_NOTHING: "❔"}[made.code]
    head = ["scenario", "verdict", "pairs", *FIGURES.values(), "open", "new harm"]
    lines = [f"## {mark} {made.line}", "", f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for each in made.scenarios:
        found = each.ruling
        told = [figure_text(found.figures[name]).partition(" pairs")[0].removeprefix(words).strip()
                if found.figures[name].stated else "not stated" for name, words in FIGURES.items()]  # fmt: skip
        cells = [code(each.scenario.name), found.verdict, str(len(found.pairs)), *told, str(len(each.open)),
                 str(len(each.harmed))]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", *(f"- {code(each.scenario.name)}: {figure_text(figure)}"
                    for each in made.scenarios for figure in each.found.stated)]  # fmt: skip
    lines += [f"- {code(each.scenario.name)}, {'asked again' if each.repeated else 'not asked again'}: "
              f"{'; '.join([each.ruling.name, *each.ruling.in_words()[:1]]) if each.repeated else each.alone}"
              for each in made.scenarios if each.repeated or each.alone]  # fmt: skip
    lines += [f"- {note}" for note in made.notes]
    for each in made.scenarios:
        worse = [one for one in each.found.pairs if WORSE in (one.change, one.harm)]
        if worse or each.open:
            lines += ["", f"### {code(each.scenario.name)}", ""]
            lines += map(_pair, worse[:SHOWN])
            lines += [f"- {code(command)}" for command in each.again[:1]]
        if each.open:
            beside = ", those above included" if any(one in worse for one in each.open) else ""
            lines += ["", f"{len(each.open)} of {len(each.found.pairs)} pairs are open{beside}:", ""]
            lines += map(_pair, [one for one in each.open if one not in worse][:SHOWN])
    return "\n".join(lines) + "\n"


def _pair(pair: Pair) -> str:
    return f"- trial {pair.number}: {pair.base.outcome} → {pair.new.outcome}: {code(pair.new.why)}"


def workflow_commands(made: ScenarioGate) -> list[str]:
    """The gate as commands of a GitHub workflow, one for each scenario that did not pass, and for each note."""
    found = [f"::warning title=chaoslab gate::{_escaped(note)}" for note in made.notes]
    for case in cases(made):
        if case.state is not RulingState.PASSED:
            kind = "error" if case.state is RulingState.FAILED else "warning"
            place = f"file={_escaped(case.classname, ',:')},title={_escaped(f'chaoslab gate, {case.name}', ',:')}"
            found.append(f"::{kind} {place}::{_escaped(case.told.partition(chr(10))[0])}")
    return found


def _escaped(text: str, more: str = "") -> str:
    for sign in "%\r\n" + more:
        text = text.replace(sign, f"%{ord(sign):02X}")
    return text
