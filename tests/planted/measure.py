# ruff: noqa: ARG001, E501
"""Makes the planted trials, runs them, and compares their true labels with the judge's outcomes.

`python -m tests.planted.measure` prints the tables of docs/explanation/verdicts.md; `--misses` lists what was judged otherwise.
"""

import argparse
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import chaoslab as lab
from chaoslab.worlds.virtual.patches import Patches
from tests.planted.agents import Scene
from tests.planted.chat_models import CHAT_MODELS
from tests.planted.footnotes import FOOTNOTES
from tests.planted.jobs import MORE_SHAPES, MORE_SOURCES, SHAPES, SOURCES, Job, effect_job, read_job
from tests.planted.letters import LETTERS
from tests.planted.products import PRODUCTS
from tests.planted.recipes import Recipe, recipes
from tests.planted.spelled import WAYS, spelled
from tests.planted.tickets import TICKETS
from tests.planted.words import OTHER_VOICES, PLAIN, VOICES, Words
from tests.planted.world import Claim, Kind, label

SETS = {
    "voices": VOICES,
    "plain": PLAIN,
    "other voices": OTHER_VOICES,
    "chat models": CHAT_MODELS,
    "letters": LETTERS,
    "tickets": TICKETS,
    "footnotes": FOOTNOTES,
    "products": PRODUCTS,
}
LATER = (CHAT_MODELS, LETTERS, TICKETS, FOOTNOTES, PRODUCTS)
"""The sets that have more domains, and more ways of writing a value."""
LABELS = ["correct", "degraded", "wrong", "false_success", "harm", "failed", "hung"]
GOOD = ("correct", "degraded")
DECIDED = {"end": "the trial's end", "ledger": "the ledger", "state": "the end state", "facts": "stated facts",
           "same answer": "an equal answer", "values": "values", "says": "says=", "words": "words"}  # fmt: skip
EFFECTS = [*SHAPES, "shop"]


@dataclass(frozen=True)
class Planted:
    """One trial before it runs."""

    number: int
    recipe: Recipe
    domain: str
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
    certain: bool

    @property
    def side(self) -> str:
        """right, unknown, or the error that the judge made about good and bad."""
        if self.outcome == "unknown":
            return "unknown"
        good, called = self.true in GOOD, self.outcome in GOOD
        return "right" if good is called else "good called bad" if good else "bad called good"


def planted(words: Words, seed: int, share: float = 1.0) -> Iterator[Planted]:
    """The trials of a set of wordings. `share`: the part of each recipe's weight that is made, at least one."""
    rng = random.Random(f"planted outcomes {seed}")
    later = words in LATER
    effects, sources = EFFECTS + [*MORE_SHAPES] * later, [*SOURCES] + [*MORE_SOURCES] * later
    voices: Counter[str] = Counter()
    number = 0
    for recipe in recipes():
        domains = list(recipe.domains or (sources if recipe.reading else effects))
        rng.shuffle(domains)
        start = rng.randrange(1000)
        for n in range(max(1, round(recipe.weight * share))):
            domain = domains[n % len(domains)]
            job = (
                read_job(domain, rng) if recipe.reading else effect_job(domain, rng, keyed=recipe.keyed, two=recipe.two)
            )
            by = recipe.by[(start + n) % len(recipe.by)]
            words_only = recipe.reading and (SOURCES | MORE_SOURCES)[domain].words_only
            if recipe.reading and (by == "state" or words_only):
                by = "stated" if words_only else "twin"
            if domain == "shop" and by != "twin":
                by = "twin"
            voice = voices[recipe.label] if recipe.label != "correct" else voices[recipe.agent.__qualname__]
            voices[recipe.label] += 1
            voices[recipe.agent.__qualname__] += 1
            yield Planted(number, recipe, domain, by, voice, job)
            number += 1


def run(trial: Planted, words: Words, seed: int) -> Judged:
    """Runs one trial, and labels it by what its world shows afterwards."""
    job, recipe = trial.job, trial.recipe
    options: dict[str, Any] = {"tools": job.tools, "reads": job.reads, "services": job.services or None}
    if trial.by == "stated":
        if recipe.reading:
            options |= {"facts": [list(dict.fromkeys(spelled(job.truth, way) for way in range(WAYS)))], "twin": False}
        else:
            options |= {"effects": _stated(job), "twin": True}
    elif trial.by == "state":
        options |= {"tools": (), "reads": [*job.tools, *job.reads], "state": job.world.rows}

    voiced = {kind: texts[trial.voice % len(texts)] for kind, texts in words.items()}
    behave, voice = recipe.agent, trial.voice

    def spell(value: str, kind: Kind) -> str:
        return spelled(value, voice + list(Kind).index(kind)) if words in LATER else value

    def make() -> Any:
        job.world.reset()
        scene = Scene(job, voiced, voice, spell)

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
    truth = job.truth
    claim = job.world.claim
    if isinstance(claim, Claim) and recipe.agent.__qualname__.startswith("two_readings") and claim.kind is Kind.VALUE:
        truth = f"{job.truth} and {job.call['shown'](job.neighbour)}"
    true = label(job.world, job.asked, truth)
    verdict = result.verdict
    return Judged(trial, true, str(verdict.outcome), verdict.why, result.answer, str(verdict.basis), verdict.certain)


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


def measured(words: Words, seed: int, share: float = 1.0) -> list[Judged]:
    """All trials of a set of wordings, judged."""
    with Patches():  # once for all
        return [run(trial, words, seed) for trial in planted(words, seed, share)]


def rows(judged: list[Judged]) -> list[list[Any]]:
    """The trials as plain data."""
    return [[e.true, e.outcome, e.planted.recipe.label, e.planted.recipe.category, str(e.answer), e.basis, e.certain,
             e.side] for e in judged]  # fmt: skip


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--misses", action="store_true")
    parser.add_argument("--words", choices=[*SETS], default="voices")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--share", type=float, default=1.0)
    given = parser.parse_args()
    all_of = measured(SETS[given.words], given.seed, given.share)
    print(by_basis(all_of))
    print(matrix(all_of))
    for each in all_of:
        if each.true != each.planted.recipe.label:
            print("LABEL", each.planted.recipe.label, "became", each.true, _line(each))
        elif given.misses and each.side not in ("right", "unknown"):
            print(_line(each))


def _line(each: Judged) -> str:
    trial = each.planted
    return f"{each.true} -> {each.outcome} | {trial.by} {trial.domain} {trial.recipe.agent.__qualname__} | {each.why} | {each.answer!r}"


def by_basis(judged: list[Judged]) -> str:
    """The kinds of grounds, and how often each was right about good and bad, as a table of Markdown."""
    columns = ["right", "good called bad", "bad called good", "unknown"]
    cells = Counter((DECIDED.get(each.basis, each.basis), each.side) for each in judged)
    lines = ["| decided by | trials | " + " | ".join(columns) + " |", "| --- |" + " ---: |" * (len(columns) + 1)]
    for name in dict.fromkeys(DECIDED.values()):
        row = [cells[name, column] for column in columns]
        if sum(row):
            lines.append(f"| {name} | {sum(row)} | " + " | ".join(str(n or "·") for n in row) + " |")
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
