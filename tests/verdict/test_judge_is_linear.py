"""Judging takes a number of steps that grows with the effects of a trial, not with their square."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chaoslab.analysis.verdict._matching import EffectPairing, EffectRules, matches_expected_effect
from chaoslab.analysis.verdict.judge import judge_trial
from chaoslab.core.events import Effect, Event, PromptStarted
from tests.event_parts import story
from tests.verdict.trials import TRIAL, effect, finished

FEW, TIMES, MORE = 50, 4, 1.3
"""So many effects, so many times as many, and how much more each of those may cost."""


def steps(events: list[Event]) -> int:
    """The bytecodes that the verdict on a trial takes."""
    history, count, before = story(*events), 0, sys.gettrace()

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    sys.settrace(trace)
    try:
        verdict = judge_trial(history, TRIAL)
    finally:
        sys.settrace(before)
    assert not verdict.broken, verdict.why
    return count


def twin(*effects: dict[str, Any], **rules: Any) -> PromptStarted:
    given: dict[str, Any] = {"effects": list(effects), "twin": "Done.", "twin_s": 1.0, "exact": True, **rules}
    return PromptStarted(prompt_index=1, prompt="Go.", stated=True, **given)


def row(name: object) -> dict[str, Any]:
    return {"effect": "append", "row": f"c{name}"}


def mail(to: object, text: str = "x") -> dict[str, Any]:
    return {"effect": "message_sent", "to": f"a{to}", "text": text}


def rows(n: int, name: Callable[[int], object]) -> list[Effect]:
    return [effect("append", row=f"c{name(each)}") for each in range(n)]


UNDOES = {"refund": "charge"}
TRIALS: dict[str, Callable[[int], list[Event]]] = {
    "equal ones, too often": lambda n: [twin(row(0), row(1)), *rows(n, lambda each: each % 2)],
    "all others": lambda n: [twin(row(0), row(1)), *rows(n, lambda each: -each)],
    "each twice": lambda n: [twin(*map(row, range(n // 2))), *rows(n, lambda each: each % (n // 2))],
    "one of many, twice": lambda n: [twin(*[row(0)] * (n // 2)), *rows(n, lambda _: 0)],
    "all altered": lambda n: [twin(*map(mail, range(n))), *(effect("message_sent", to=f"a{k}") for k in range(n))],
    "to others": lambda n: [twin(*map(mail, range(n))), *(effect("message_sent", to=f"b{k}") for k in range(n))],
    "all taken back": lambda n: [
        twin(undoes=UNDOES), *(effect(kind, order=k) for kind in ("charge", "refund") for k in range(n // 2))
    ],
    "equal ones taken back": lambda n: [
        twin(undoes=UNDOES), *(effect(kind, order=1) for kind in ("charge", "refund") for _ in range(n // 2))
    ],
    "idempotent": lambda n: [twin(idempotent=["append"]), *rows(n, lambda each: each // 2)],
    "vaguely stated": lambda n: [twin({"effect": "append"}, exact=None), *rows(n, lambda each: each)],
    "what is lost": lambda n: [twin(*map(row, range(n)))],
}  # fmt: skip


@pytest.mark.parametrize("name", TRIALS)
def test_four_times_the_effects_take_four_times_the_steps(name: str) -> None:
    few, many = (steps([*TRIALS[name](n), finished("Done.")]) for n in (FEW, FEW * TIMES))
    assert many < few * TIMES * MORE


CONTENTS = st.dictionaries(st.sampled_from("ab"), st.sampled_from([1, 2, "1", "x"]), max_size=2)


@given(st.lists(CONTENTS, max_size=4), st.lists(CONTENTS, max_size=4), st.booleans())
@example([{}, {"a": 1}], [{"a": 1}, {"b": 2}], False)
@example([{}, {"a": 1}, {"a": 1, "b": 1}], [{"a": 1, "b": 1}, {"a": 1}, {"b": 2}], False)
def test_as_many_wishes_as_possible_have_an_effect(
    wished: list[dict[str, Any]], made: list[dict[str, Any]], exact: bool
) -> None:
    stated, done = [{"effect": "post", **each} for each in wished], [effect("post", **each) for each in made]
    rules = EffectRules(exact=exact)
    found = EffectPairing(stated, done, rules)
    assert all(matches_expected_effect(rules, stated[wish], done[number]) for number, wish in found.pairs.items())
    assert len(set(found.pairs.values())) == len(found.pairs) == most(stated, done, rules)
    assert found.unpaired_expected == [n for n in range(len(stated)) if n not in found.pairs.values()]
    for number, each in enumerate(done):
        fitting = [n for n, wish in enumerate(stated) if matches_expected_effect(rules, wish, each)]
        assert found.find_matching_expected(number) == (fitting[0] if fitting else None)


def most(stated: list[dict[str, Any]], done: list[Effect], rules: EffectRules) -> int:
    """The size of the largest set of pairs, by trying all."""
    if not stated:
        return 0
    first, rest = stated[0], stated[1:]
    ways = [done[:n] + done[n + 1 :] for n, each in enumerate(done) if matches_expected_effect(rules, first, each)]
    return max([most(rest, done, rules), *(1 + most(rest, way, rules) for way in ways)])
