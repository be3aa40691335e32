"""Measures the claims that conclusions rest on, each figure beside its goal: `python benchmarks/claims.py [PART …]`.

A row says how it was tried. *command*: by `chaoslab` itself, with trials of real agents in virtual time, which draw
their own chance. *function*: by the public function of that name, or the one that the command calls, with such trials.
*dice*: by the function that the command calls, with trials that dice draw, where thousands of them are needed.

Compared prompts are of different difficulty, the same on both sides: the shares that end well are spread by 0.2 around
their mean. Where "prompts spread", the new side is better or worse by 0.3 at each, with equal chances, so that it is no
worse over all prompts. A baseline is asked 60 times, by an agent as good as it. Brute force runs each fault at each
call, and each pair, one by one with `lab.run`. The gate's seconds are of the CPU, children included. Exits 1 if a goal
is missed.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir, contextmanager, suppress
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from statistics import fmean, median
from time import process_time
from typing import Any, NamedTuple

import chaoslab as lab
from chaoslab.analysis.measures.intervals import compute_pooled_rate, rate_lower_bound
from chaoslab.analysis.verdict.standing import Standing, get_outcome_standing
from chaoslab.cli import main as main_of_lab
from chaoslab.scenarios.comparing import compare_sides
from chaoslab.scenarios.load import load_file_scenarios
from chaoslab.scenarios.sides import ScenarioSide
from chaoslab.search.compared import Comparison
from chaoslab.search.pairs import WORSE, Pair, Side

RUNS, COMMANDS, AGENTS = 500, 400, 20
GATES, PAIRS, POOL = 10, 100, 4000
"""The gates of one baseline, the pairs of a command, and the real trials out of which comparisons are drawn."""
ALPHA = 0.05
WELL = Side(True, "correct", "", 1, 1.0, done=True)
BAD = Side(False, "wrong", "", 1, 1.0, done=False)
Row = tuple[str, str, str, str, bool]
"""The claim with its condition, how it was tried, the goal, what was measured, and if the goal is met."""
COMMAND, FUNCTION, DICE = "command", "function", "dice"
Trial = Callable[[random.Random, float], Side]


class Case(NamedTuple):
    """The prompts, the most pairs, and both sides: the share that ends well at each prompt, and how a trial is made
    of it."""

    prompts: int
    pairs: int
    base: Trial
    new: Trial
    shares: Callable[[random.Random], tuple[float, float]]


def clear(dice: random.Random, share: float) -> Side:
    return WELL if dice.random() < share else BAD


def unclear(part: float, side: Side) -> Trial:
    """A trial that is open with this chance, if it is as this one. What was done is known of all."""

    def draw(dice: random.Random, share: float) -> Side:
        found = clear(dice, share)
        if found is side and dice.random() < part:
            return replace(found, well=None, outcome="unknown" if found.done else "undone")
        return found

    return draw


def equal(mean: float) -> Callable[[random.Random], tuple[float, float]]:
    return lambda dice: ((share := mean + dice.uniform(-0.2, 0.2)), share)


def spread(mean: float, by: float) -> Callable[[random.Random], tuple[float, float]]:
    return lambda dice: (mean, mean + dice.choice((-by, by)))


def fallen(base: float, new: float) -> Callable[[random.Random], tuple[float, float]]:
    return lambda _: (base, new)


def compared(dice: random.Random, case: Case) -> Comparison:
    shares = [case.shares(dice) for _ in range(case.prompts)]
    found = Comparison(ALPHA, round_size=case.prompts)
    for number in range(case.pairs - case.pairs % case.prompts):
        prompt = number % case.prompts
        base, new = case.base(dice, shares[prompt][0]), case.new(dice, shares[prompt][1])
        found.add(Pair(number + 1, base, new, str(prompt)))
        if found.is_decided:
            break
    return found


def share_of(case: Case, verdict: str, seed: int = 1) -> tuple[float, float]:
    """The share of comparisons with this verdict, and the median of their pairs."""
    dice = random.Random(seed)
    ended = [each for each in (compared(dice, case) for _ in range(RUNS)) if each.verdict == verdict]
    return len(ended) / RUNS, median([len(each.pairs) for each in ended] or [0])


def of_null() -> Iterator[Row]:
    for prompts, pairs in ((1, 200), (1, 1000), (2, 200), (4, 200), (8, 200), (8, 1000), (26, 200), (26, 1040)):
        share, _ = share_of(Case(prompts, pairs, clear, clear, equal(0.75)), WORSE)
        yield f'false "worse", {pairs} pairs, prompts {prompts}', DICE, "≤ 5 %", f"{share:.1%}", share <= ALPHA
    for prompts, pairs in ((2, 200), (4, 200), (8, 200), (8, 1000), (26, 1040)):
        share, _ = share_of(Case(prompts, pairs, clear, clear, spread(0.65, 0.3)), WORSE)
        text = f'false "worse", {pairs} pairs, prompts {prompts}, prompts spread by ± .3'
        yield text, DICE, "≤ 5 %", f"{share:.1%}", share <= ALPHA


def of_open() -> Iterator[Row]:
    for prompts, base, new in ((1, 0.0, 0.5), (1, 0.5, 0.5), (1, 0.0, 0.05), (8, 0.0, 0.5), (8, 0.0, 0.05)):
        case = Case(prompts, 200, unclear(base, WELL), unclear(new, WELL), equal(0.75))
        share, _ = share_of(case, WORSE)
        how = f"good answers unclear in {base:.0%} → {new:.0%}"
        yield f'false "worse", 200 pairs, prompts {prompts}, {how}', DICE, "≤ 5 %", f"{share:.1%}", share <= ALPHA
    for prompts in (1, 8):
        case = Case(prompts, 200, clear, unclear(1.0, BAD), fallen(0.9, 0.6))
        share, at = share_of(case, WORSE)
        said = f"{share:.3f}, median stop {at:g}"
        yield f".9 → .6, bad answers unclear, 200 pairs, prompts {prompts}", DICE, "≥ 0.9", said, share >= 0.9


def of_power() -> Iterator[Row]:
    for base, new, prompts, pairs, least in (
        (0.95, 0.75, 1, 200, 0.9), (0.95, 0.75, 4, 200, 0), (0.95, 0.75, 8, 200, 0.9), (0.95, 0.75, 26, 208, 0.9),
        (0.95, 0.85, 1, 400, 0), (0.95, 0.85, 8, 400, 0), (0.95, 0.9, 8, 1600, 0),
    ):  # fmt: skip
        share, at = share_of(Case(prompts, pairs, clear, clear, fallen(base, new)), WORSE)
        said = f"{share:.3f}, median stop {at:g}"
        goal = f"≥ {least:g}" if least else ""
        yield f"{base:g} → {new:g}, {pairs} pairs, prompts {prompts}", DICE, goal, said, share >= least


def of_interval() -> Iterator[Row]:
    for prompts, pairs, base, new in ((1, 200, 0.95, 0.75), (8, 200, 0.95, 0.75), (8, 200, 0.75, 0.8)):
        dice, missed = random.Random(4), 0
        case = Case(prompts, pairs, clear, clear, fallen(base, new))
        for _ in range(RUNS):
            interval = compared(dice, case).figures["well"].interval
            missed += not interval.low <= new - base <= interval.high
        text = f"interval misses the change at the stop, {base:g} → {new:g}, prompts {prompts}"
        yield text, DICE, "≤ 5 %", f"{missed / RUNS:.1%}", missed / RUNS <= ALPHA


def of_rates() -> Iterator[Row]:
    spreads: dict[str, Sequence[float]] = {
        "spread from .1 to 1": (0.1, 0.3, 0.5, 0.7, 0.9, 1.0), "one in five at .2, else .98": (0.2, *[0.98] * 4),
        "one in twenty at 0, else 1": (0.0, *[1.0] * 19), "all .95": (0.95,),
    }  # fmt: skip
    for prompts, trials in ((4, 40), (8, 25), (26, 40)):
        for name, shares in spreads.items():
            dice, held, beyond, mean = random.Random(6), 0, 0, fmean(shares)
            for _ in range(RUNS):
                own = [dice.choice(shares) for _ in range(prompts)]
                counts = [(sum(dice.random() < each for _ in range(trials)), trials) for each in own]
                found = compute_pooled_rate(counts)
                held += found is not None and mean in found.interval
                beyond += rate_lower_bound(counts, ALPHA) > mean
            text = f"mean of other prompts covered, {prompts} prompts of {trials} trials, {name}"
            said = f"{held / RUNS:.1%}; nines too many in {beyond / RUNS:.1%}"
            yield text, DICE, "≥ 95 %; ≤ 5 %", said, held / RUNS >= 1 - ALPHA and beyond / RUNS <= ALPHA


def get() -> str:
    return "49"


def alt() -> str:
    return "49"


def pay() -> str:
    return "paid"


def drawing(_: str) -> str:
    get()
    if random.random() < 0.4:
        raise RuntimeError("no idea")
    pay()
    return "Paid."


def of_chance() -> Iterator[Row]:
    faults = [lab.inject("latency", "get", delay_s=1, chance=0.5)]
    runs = [lab.run_many(drawing, "How much?", reads=[get], trials=200, seed=seed, faults=faults, anyway=True)
            for seed in range(10)]  # fmt: skip
    failed = [sum(str(trial.verdict.outcome) == "failed" for trial in run) for run in runs]
    inside = all(56 <= each <= 104 for each in failed)  # 99.97 % of binomial draws
    yield (
        "an agent that fails in 40 %, ten seeds of 200 trials",
        FUNCTION,
        "56 to 104",
        f"{min(failed)} to {max(failed)}",
        inside,
    )


def noisy(_: str) -> str:
    for read in (get, alt):
        with suppress(Exception):
            read()
    pay()
    if random.random() < 0.04:
        pay()
    return "Paid."


def of_noise() -> Iterator[Row]:
    wrong = tried = 0
    for seed in range(20):
        found = lab.explore(noisy, "Pay.", tools=[pay], reads=[get, alt], seed=seed, by=["singles", "lasting"])
        tried += len(found.trials)
        wrong += sum(not any("pay" in each.targets for each in failure.faults) for failure in found.failures)
    yield (
        f"causes among noise, 4 % pay twice, 20 explorations of {tried // 20} cells",
        FUNCTION,
        "0",
        str(wrong),
        not wrong,
    )


FAULTS = ("timeout_before_effect", "lost_reply", "refused", "exception", "rate_limit", "empty_response")
BUDGETS = (1, 10, 20, 30, 40, 60)
GIVEN: dict[str, Any] = {"tools": [pay], "reads": [get, alt]}
Agent = Callable[[str], str]


def ruled(dice: random.Random) -> Agent:
    """An agent that survives most errors, and pays twice after some errors of one read, and some pairs of errors."""
    kinds = ("timed out", "refused", "another error")
    alone = [(n, dice.choice(kinds)) for n in range(2) if dice.random() < 0.3]
    pairs = [(dice.choice(kinds), dice.choice(kinds)) for _ in range(2)]

    def agent(_: str) -> str:
        seen = error_of(get), error_of(alt)
        pay()
        if seen in pairs or any(seen[n] == kind for n, kind in alone):
            pay()
        return "Paid."

    return agent


def error_of(call: Callable[[], str]) -> str:
    try:
        call()
    except TimeoutError:
        return "timed out"
    except ConnectionRefusedError:
        return "refused"
    except Exception:  # noqa: BLE001
        return "another error"
    return ""


def fails(agent: Agent, *faults: lab.Injection) -> bool:
    """One trial, by brute force."""
    outcome = lab.run(agent, "Pay.", **GIVEN, faults=faults, anyway=True).outcome
    return get_outcome_standing(str(outcome)) is Standing.BAD


def of_map() -> Iterator[Row]:
    dice, cells, otherwise, pairs, missed, calls, wrong = random.Random(9), 0, 0, 0, 0, 0, 0
    for _ in range(AGENTS):
        agent = ruled(dice)
        found = lab.explore(agent, "Pay.", **GIVEN, tries=FAULTS)
        tried = [(row, probe.make_injection(row.site, lasts=row.lasts), one.failed) for row, probe,
                 one in found.map.cells
                 if one is not None and not row.after.injections]  # fmt: skip
        failed = {injection.name + str(row): fails(agent, injection) for row, injection, _ in tried}
        cells += len(tried)
        otherwise += sum(failed[injection.name + str(row)] != told for row, injection, told in tried)
        survived = [injection for row, injection, told in tried if not told and not row.lasts]
        seen = [{target for each in trial.variation.injections for target in each.targets} for trial in found.trials
                if trial.failed and len(trial.variation.injections) == 2]  # fmt: skip
        for one, other in combinations(survived, 2):
            if one.targets != other.targets and fails(agent, one, other):
                pairs += 1
                missed += {*one.targets, *other.targets} not in seen
        for budget in BUDGETS:
            part = lab.explore(agent, "Pay.", **GIVEN, tries=FAULTS, trials=budget).map
            for site in part.decided_calls:
                calls += 1
                truth = any(failed[injection.name + str(row)] for row, injection, _ in tried
                            if row.site == site and (part.has_lasting_trials or not row.lasts))  # fmt: skip
                wrong += (site in part.single_points_of_failure) != truth
    of = f"{AGENTS} agents of random rules"
    yield f"cells that brute force finds otherwise, of {cells}, {of}", FUNCTION, "0", str(otherwise), not otherwise
    text = f"pairs that fail by brute force, of {pairs}, where no pair at these calls was seen to, {of}"
    yield text, FUNCTION, "0", str(missed), not missed
    text = f"wrong words on single points of failure, of {calls} calls named, {of} and {len(BUDGETS)} budgets"
    yield text, FUNCTION, "0", str(wrong), not wrong


UNSURE = "It may have been paid."
SAYS = {"pay": {"done": "Paid.", "unsure": UNSURE}}


def keeps(_: str) -> str:
    with suppress(Exception):
        get()
    for _attempt in range(2):
        with suppress(Exception):
            pay()
            return "Paid."
    return UNSURE


def once(_: str) -> str:
    with suppress(Exception):
        get()
    try:
        pay()
    except Exception:  # noqa: BLE001
        return UNSURE
    return "Paid."


def looks(_: str) -> str:
    """Looks at a new call before it pays again, and pays twice if that fails."""
    with suppress(Exception):
        get()
    try:
        pay()
    except Exception:  # noqa: BLE001
        return UNSURE
    try:
        alt()
    except Exception:  # noqa: BLE001
        pay()
    return "Paid."


def gives_up(_: str) -> str:
    """Mends the retry, and pays twice where another read fails."""
    try:
        get()
    except Exception:  # noqa: BLE001
        pay()
    return once("")


def of_proof() -> Iterator[Row]:
    found = lab.explore(keeps, "Pay.", **GIVEN, tries=FAULTS, says=SAYS)
    for agent, truth in ((once, True), (looks, False), (gives_up, False), (keeps, False)):
        proof = lab.prove(found, agent)
        text = f"prove: {agent.__name__} in place of an agent that pays again after an error"
        said = "holds" if proof.holds else "does not hold"
        yield text, FUNCTION, "holds" if truth else "does not hold", said, proof.holds is truth


def of_baseline() -> Iterator[Row]:
    dice, baselines, looks = random.Random(8), 100, 60
    once = twice = 0
    for _ in range(baselines):
        kept = [clear(dice, 0.9) for _ in range(200)]
        alarms = [_worse(dice, kept) for _ in range(looks)]
        once += any(alarms)
        twice += any(_worse(dice, [clear(dice, 0.9) for _ in range(200)]) for alarm in alarms if alarm)
    text = f"baselines of which one of {looks} gates of an equal agent fails"
    yield f"{text}, checked once (no revision at hand)", DICE, "", f"{once / baselines:.1%}", True
    yield f"{text}, rechecked on fresh seeds", DICE, "≤ 5 %", f"{twice / baselines:.1%}", twice <= ALPHA * baselines


def _worse(dice: random.Random, kept: Sequence[Side]) -> bool:
    found = Comparison(ALPHA)
    for number, base in enumerate(kept, 1):
        found.add(Pair(number, base, clear(dice, 0.9), ""))
        if found.is_decided:
            break
    return found.verdict == WORSE


DRAWING = """
import os
import random


def get() -> str:
    return "49"


def pay() -> str:
    return "paid"


def answer(prompt, share, skipped=int(os.environ.get("SKIPPED", "0"))):
    get()
    for _ in range(skipped):
        random.random()  # an agent as good, whose trials end otherwise
    mean = share + 0.04 * (int(prompt.split()[-1]) % 3 - 1)
    if random.random() >= mean:
        raise RuntimeError("no idea")
    pay()
    return "Paid."


def base(prompt):
    return answer(prompt, 0.75)


def good(prompt):
    return answer(prompt, 0.95)
"""
DRAWN = """
name: drawing
agent: drawing_agent:{agent}
tools: [drawing_agent:pay]
reads: [drawing_agent:get]
prompt: Pay 1
effects: [{{effect: pay}}]
faults: [{{fault: latency, target: get, delay_s: 1}}]
"""


@contextmanager
def project(**texts: str) -> Iterator[Path]:
    """A context in a new folder with these scenarios, by name, and the agent that draws."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        Path("drawing_agent.py").write_text(DRAWING)
        for name, agent in texts.items():
            Path(f"{name}.chaos.yml").write_text(DRAWN.format(agent=agent))
        yield Path(folder)


def command(*words: str, **variables: str) -> int:
    """The exit code of `chaoslab` with these words, in a child of this process, which has imported it."""
    sys.stdout.flush()
    with open(os.devnull, "w") as nothing:
        if (child := os.fork()) == 0:
            os.environ.update(variables)
            os.dup2(nothing.fileno(), 1)
            os.dup2(nothing.fileno(), 2)
            code = 2
            try:
                code = main_of_lab([*words])
            finally:
                os._exit(code)  # whatever was raised: the folder is the parent's
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def of_itself() -> Iterator[Row]:
    with project(base="base"):
        words = ["compare", "base.chaos.yml", "--a-a", str(COMMANDS), "-n", str(PAIRS), "--json"]
        said = subprocess.run([sys.executable, "-m", "chaoslab", *words], check=True, capture_output=True, text=True)
        false = json.loads(said.stdout)["worse"] / COMMANDS
        text = f"`compare --a-a {COMMANDS} -n {PAIRS}`: called worse than itself"
        yield text, COMMAND, "≤ 5 %", f"{false:.1%}", false <= ALPHA


def of_command() -> Iterator[Row]:
    with project(base="base", good="good"):
        # imports once what each command needs
        ScenarioSide(load_file_scenarios(Path("base.chaos.yml"))[0], 1).produce_trials([1])
        words = ["compare", "good.chaos.yml", "--agent", "drawing_agent:base", "-n", str(PAIRS), "-q", "--seed"]
        share = sum(command(*words, str(seed)) == 1 for seed in range(COMMANDS)) / COMMANDS
        text = f"`compare -n {PAIRS}`, {COMMANDS} seeds"
        yield f"{text}, .95 → .75", COMMAND, "≥ 0.9", f"{share:.3f}", share >= 0.9
        for name in ("base", "good"):
            failed = 0
            for seed in range(COMMANDS // GATES):
                own = ["--baseline", "baseline.json", "--seed", str(seed), "--budget", str(PAIRS), "-q"]
                assert command("gate", f"{name}.chaos.yml", *own, "--write") == 0
                now = ["gate", f"{name}.chaos.yml", *own, "--set", "agent=drawing_agent:base"]
                failed += sum(command(*now, SKIPPED=str(n + 1)) == 1 for n in range(GATES))
            share = failed / COMMANDS
            text = f"`gate`, {COMMANDS} times, {COMMANDS // GATES} baselines of {PAIRS} trials"
            if name == "base":
                yield f"{text}: fails an agent as good", COMMAND, "≤ 5 %", f"{share:.1%}", share <= ALPHA
            else:
                yield f"{text}: fails .95 → .75", COMMAND, "≥ 0.9", f"{share:.3f}", share >= 0.9


class DrawnTrials:
    """Both sides of a comparison, each of other trials out of a pool of real ones by prompt."""

    def __init__(self, dice: random.Random, pool: Sequence[Sequence[Side]]) -> None:
        self.round_size = len(pool)
        self._left = [dice.sample(each, len(each)) for each in pool]

    def take(self, numbers: Sequence[int]) -> list[Side]:
        return [self._left[(number - 1) % self.round_size].pop() for number in numbers]

    def explain_cause(self, _: int) -> str:
        return ""


def pool_of(agent: str, prompts: int) -> list[Sequence[Side]]:
    """Real trials by prompt, POOL in all."""
    changed = [[f"agent=drawing_agent:{agent}", f"prompt=Pay {n}"] for n in range(prompts)]
    made = [load_file_scenarios(Path("base.chaos.yml"), changed=each)[0] for each in changed]
    return [ScenarioSide(each, seed).produce_trials(range(1, POOL // prompts + 1)) for seed, each in enumerate(made)]


def of_prompts() -> Iterator[Row]:
    dice = random.Random(10)
    with project(base="base"):
        for prompts, most in ((1, 200), (8, 200), (26, 208)):
            base, good = pool_of("base", prompts), pool_of("good", prompts)
            alike = [DrawnTrials(dice, base) for _ in range(COMMANDS)]
            found = [
                compare_sides(each, each, trials=most, alpha=ALPHA) for each in alike
            ]  # each trial is on one side alone
            share = sum(each.verdict == WORSE for each in found) / COMMANDS
            text = f"{COMMANDS} comparisons of {most} pairs out of {POOL} real trials, prompts {prompts}"
            yield f'{text}: false "worse"', FUNCTION, "≤ 5 %", f"{share:.1%}", share <= ALPHA
            found = [compare_sides(DrawnTrials(dice, good), DrawnTrials(dice, base), trials=most, alpha=ALPHA)
                     for _ in range(COMMANDS)]  # fmt: skip
            ended = [len(each.pairs) for each in found if each.verdict == WORSE]
            share, at = len(ended) / COMMANDS, median(ended or [0])
            yield f"{text}: .95 → .75", FUNCTION, "≥ 0.9", f"{share:.3f}, median stop {at:g}", share >= 0.9


AGENT = """
def charge(order: int) -> str:
    return "charged"


def answer(prompt):
    for _ in range(3):
        try:
            return f"Order 17: {charge(17)}."
        except OSError:
            continue
    return "I could not charge order 17."
"""
SCENARIO = """
name: charge
agent: plain_agent:answer
tools: [plain_agent:charge]
prompt: Charge order 17.
accept: [correct, degraded, harm]
faults:
  - {fault: timeout_before_effect, target: charge, chance: 0.3}
"""


def of_gate() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "plain_agent.py").write_text(AGENT)
        Path(folder, "charge.chaos.yml").write_text(SCENARIO)
        words = [sys.executable, "-m", "chaoslab", "gate", "charge.chaos.yml", "--baseline", "baseline.json", "-q"]
        subprocess.run([*words, "--write"], cwd=folder, check=True, capture_output=True)
        began_s = cpu_s()
        done = subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True)
        took_s = cpu_s() - began_s
    assert "gate passed: no scenario got worse, in 200 trials" in done.stdout
    yield "a gate of a plain Python agent, 200 pairs", COMMAND, "< 5 s", f"{took_s:.1f} s", took_s < 5


def cpu_s() -> float:
    times = os.times()
    return process_time() + times.children_user + times.children_system


PARTS = [
    "chance", "noise", "map", "proof", "itself", "command", "prompts", "null", "open", "power", "interval",
    "baseline", "rates", "gate",
]  # fmt: skip


def main(parts: list[str]) -> int:
    rows: list[Row] = []
    print("| | tried by | goal | measured |\n|---|---|---|---|")
    for name in parts or PARTS:
        for row in globals()[f"of_{name}"]():
            rows.append(row)
            print("| {} | {} | {} | {} |{}".format(*row[:4], "" if row[4] else " MISSED"), flush=True)
    return 0 if all(row[4] for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
