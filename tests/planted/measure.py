# ruff: noqa: ARG001, E501
"""Makes the planted trials, runs them, and compares their true labels with the judge's outcomes.

`python -m tests.planted.measure` prints the tables of docs/explanation/verdicts.md; `--misses` lists what was judged otherwise.
"""

import argparse
import random
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import chaoslab as lab
from chaoslab.worlds.virtual.patches import Patches
from tests.planted.agents import Scene
from tests.planted.jobs import SHAPES, SOURCES, Job, effect_job, read_job
from tests.planted.recipes import Recipe, recipes
from tests.planted.words import SAYS, VOICES
from tests.planted.world import Claim, Kind, World, label

STATED = ("nothing", "facts", "says", "facts and says", "judge")
"""The things that a user states. `facts`: facts, effects or a state. `says`: one line for all effects. `judge`: a function that knows the truth of an answer."""
LABELS = ["correct", "degraded", "wrong", "false_success", "harm", "failed", "hung"]
GOOD = ("correct", "degraded")
OPEN = ("undone", "unknown")
DECIDED = {"end": "the trial's end", "ledger": "the ledger", "state": "the end state", "facts": "stated facts",
           "same answer": "an equal answer", "values": "values", "says": "says=", "judge": "judge="}  # fmt: skip
EFFECTS = [*SHAPES, "shop"]
TRIAL = 3
"""The number of the run that is the trial: the calm one comes first, twice."""
SHARE = 0.4
"""The part of the trials that the table of the documents is made of."""


@dataclass(frozen=True)
class Planted:
    """One trial before it runs."""

    number: int
    recipe: Recipe
    domain: str
    stated: str
    by: str
    voice: int
    job: Job


@dataclass(frozen=True)
class Judged:
    """One trial after it ran: the planted label, the one of the ground truth, and the judge's word."""

    planted: Planted
    true: str
    outcome: str
    why: str
    answer: Any
    basis: str

    @property
    def side(self) -> str:
        """right, open, or the error that the judge made about good and bad."""
        if self.outcome in OPEN:
            return "open"
        good, called = self.true in GOOD, self.outcome in GOOD
        return "right" if good is called else "good called bad" if good else "bad called good"


def planted(stated: str, seed: int, share: float = 1.0) -> Iterator[Planted]:
    """The trials of which this is stated. `share`: the part of each recipe's weight that is made, at least one."""
    rng = random.Random(f"planted outcomes {seed}")
    voices: Counter[str] = Counter()
    number = 0
    for recipe in recipes():
        domains = list(recipe.domains or (SOURCES if recipe.reading else EFFECTS))
        rng.shuffle(domains)
        for n in range(max(1, round(recipe.weight * share))):
            domain = domains[n % len(domains)]
            job = (
                read_job(domain, rng) if recipe.reading else effect_job(domain, rng, keyed=recipe.keyed, two=recipe.two)
            )
            by = "state" if recipe.by == ("state",) else "twin"
            if "facts" in stated and "stated" in recipe.by and domain != "shop":
                by = "stated" if recipe.reading or n % 2 else "state"
            voice = voices[recipe.label] if recipe.label != "correct" else voices[recipe.agent.__qualname__]
            voices[recipe.label] += 1
            voices[recipe.agent.__qualname__] += 1
            yield Planted(number, recipe, domain, stated, by, voice, job)
            number += 1


def run(trial: Planted, seed: int) -> Judged:
    """Runs one trial, and labels it by what its world shows afterwards."""
    job, recipe = trial.job, trial.recipe
    worlds: list[World] = []  # that of the trial, if other runs came after it
    options: dict[str, Any] = {"tools": job.tools, "reads": job.reads, "services": job.services or None}
    if trial.by == "stated":
        if recipe.reading:
            options["facts"] = [job.truth]
        else:
            options |= {"effects": _stated(job), "twin": True}
    elif trial.by == "state":
        options |= {"tools": (), "reads": [*job.tools, *job.reads], "state": job.world.rows}

    if "says" in trial.stated:
        options["says"] = SAYS
    elif trial.stated == "judge":
        options["judge"] = _knows_all(job, recipe, lambda: (worlds[0] if worlds else job.world).claim)
    voiced = {kind: texts[trial.voice % len(texts)] for kind, texts in VOICES.items()}
    behave, voice = recipe.agent, trial.voice

    runs = 0

    def make() -> Any:
        nonlocal runs
        runs += 1
        if runs == TRIAL + 1:  # the lab asks what the answer rests on, in runs of their own
            worlds.append(deepcopy(job.world))
        job.world.reset()
        scene = Scene(job, voiced, voice)

        def agent(prompt: str) -> Any:
            try:
                answer = behave(scene)
            except Exception:
                job.world.ended = "raised"
                raise
            job.world.ended = "returned"
            return answer

        return agent

    result = lab.run(
        lab.fresh(make),
        job.prompt,
        faults=recipe.faults(job),
        seed=seed * 1000 + trial.number,
        calls_max=120,
        **options,
    )
    assert runs >= TRIAL
    true = label(world := (worlds[0] if worlds else job.world), job.asked, _truth(job, recipe, world.claim))
    verdict = result.verdict
    return Judged(trial, true, str(verdict.outcome), verdict.why, result.answer, str(verdict.basis))


def _truth(job: Job, recipe: Recipe, claim: Claim | None) -> str:
    """The value that is right in the answer, or both where the agent reads two."""
    if isinstance(claim, Claim) and recipe.agent.__qualname__.startswith("two_readings") and claim.kind is Kind.VALUE:
        return f"{job.truth} and {job.call['shown'](job.neighbour)}"
    return job.truth


def _knows_all(job: Job, recipe: Recipe, claimed: Callable[[], Claim | None]) -> Callable[[Any], str]:
    """A judge who says what the ground truth says of the answer."""

    def judge(question: Any) -> str:
        claim = claimed()
        if claim is None:
            return "unclear"
        if claim.kind in (Kind.DONE, Kind.DONE_RETRY, Kind.DOUBLED, Kind.VALUE, Kind.VALUE_RETRY):
            if question.undone:
                return "passes over it"
            return "right" if claim.stated in ("", _truth(job, recipe, claim)) else "wrong"
        if claim.kind in (Kind.NOT_DONE, Kind.PARTIAL) and not question.undone:
            return "wrong"
        return "admits it"

    return judge


def _stated(job: Job) -> list[dict[str, Any]]:
    """The effects that were asked for, under the parameters' own names."""
    import inspect

    named = {tool.__name__: list(inspect.signature(tool).parameters) for tool in job.tools}
    stated = []
    for effect, arguments in job.asked:
        given = dict(arguments)
        values = [given["who"], given.get("value", given.get("text"))]
        stated.append({"effect": effect, **dict(zip(named[effect], values, strict=False))})
    return stated


def measured(stated: str, seed: int, share: float = 1.0) -> list[Judged]:
    """All trials of which this is stated, judged."""
    with Patches():  # once for all
        return [run(trial, seed) for trial in planted(stated, seed, share)]


def rows(judged: list[Judged]) -> list[list[Any]]:
    """The trials as plain data."""
    return [[e.true, e.outcome, e.planted.recipe.label, e.planted.recipe.category, e.planted.stated, e.basis, e.side,
             _line(e)] for e in judged]  # fmt: skip


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--misses", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--share", type=float, default=SHARE)
    given = parser.parse_args()
    all_of = [each for stated in STATED for each in measured(stated, given.seed, given.share)]
    print(by_basis(all_of), by_stated(all_of), matrix(all_of), sep="\n\n")
    for each in all_of:
        if each.true != each.planted.recipe.label:
            print("LABEL", each.planted.recipe.label, "became", each.true, _line(each))
        elif given.misses and each.side not in ("right", "open"):
            print(_line(each))


def _line(each: Judged) -> str:
    trial = each.planted
    return f"{each.true} -> {each.outcome} | {trial.stated} {trial.by} {trial.domain} {trial.recipe.agent.__qualname__} | {each.why} | {each.answer!r}"


def by_basis(judged: list[Judged]) -> str:
    """The kinds of grounds, and how often each was right about good and bad, as a table of Markdown."""
    columns = ["right", "good called bad", "bad called good"]
    cells = Counter((DECIDED.get(each.basis, each.basis), each.side) for each in judged if each.side != "open")
    lines = ["| decided by | trials | " + " | ".join(columns) + " |", "| --- |" + " ---: |" * (len(columns) + 1)]
    for name in dict.fromkeys(DECIDED.values()):
        row = [cells[name, column] for column in columns]
        if sum(row):
            lines.append(f"| {name} | {sum(row)} | " + " | ".join(str(n or "·") for n in row) + " |")
    return "\n".join(lines)


def by_stated(judged: list[Judged]) -> str:
    """The share of open trials by what was stated, as a table of Markdown."""
    lines = ["| stated | trials | open | of them left undone |", "| --- | ---: | ---: | ---: |"]
    for stated in STATED:
        of = [each for each in judged if each.planted.stated == stated]
        undone = sum(each.outcome == "undone" for each in of)
        left = sum(each.side == "open" for each in of)
        lines.append(f"| {stated} | {len(of)} | {left / len(of):.0%} | {undone / len(of):.0%} |")
    return "\n".join(lines)


def matrix(judged: list[Judged]) -> str:
    """True labels by outcomes, as a table of Markdown."""
    cells = Counter((each.true, each.outcome) for each in judged)
    columns = LABELS + sorted({each.outcome for each in judged} - set(LABELS))
    lines = ["| true label | trials | " + " | ".join(columns) + " |", "| --- |" + " ---: |" * (len(columns) + 1)]
    for true in LABELS:
        row = [cells[true, outcome] for outcome in columns]
        lines.append(f"| {true} | {sum(row)} | " + " | ".join(str(n or "·") for n in row) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
