"""`lab.explore` finds what breaks an agent, tells what was not tried, and shrinks what fails."""

import asyncio
import contextlib
import hashlib
import itertools
import json
import random
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.core.events import VariationTried
from chaoslab.execution import explore
from chaoslab.execution._found_test import render_found_test
from chaoslab.execution.agents.functions import hash_agent_file
from chaoslab.execution.explore import Exploration, SearchProgress
from chaoslab.execution.options import RunOptions
from chaoslab.record.history import History
from chaoslab.record.steering import FILE
from chaoslab.search.variation import TriedVariation, Variation


def pay() -> str:
    return "paid"


def a() -> str:
    return "a"


def b() -> str:
    return "b"


def twice_if_both_fail(prompt: str) -> str:  # noqa: ARG001
    failed = 0
    for function in (a, b):
        try:
            function()
        except Exception:  # noqa: BLE001 - any error of the tool
            failed += 1
    pay()
    if failed == 2:
        pay()
    return "paid"


def retrying(prompt: str) -> str:  # noqa: ARG001
    for _ in range(3):
        try:
            return pay()
        except Exception:  # noqa: BLE001 - any error of the tool
            continue
    return "I could not pay."


def explored(agent: Callable[[str], Any] = twice_if_both_fail, **more: Any) -> Exploration:
    return lab.explore(agent, "go", **{"tools": [pay], "reads": [a, b], "seed": 1, "tries": ["exception"], **more})


def data(found: Exploration) -> str:
    return json.dumps([each.to_json() for each in found.trials])


def test_a_pair_that_pays_twice_is_found_and_told_by_its_cause() -> None:
    found = explored(by=["singles", "pairs"])
    harm, failed = found.failures
    assert repr(harm) == "harm: exception at a 1 and at b 1: pay twice"
    assert failed.cause.startswith("exception at pay 1: no answer")
    assert [each.outcome for each in found.trials] == ["correct", "failed", "correct", "correct", "harm"]
    assert harm.minimal
    assert [str(each) for each in found.untried] == [
        "every fault at pay 2 (after exception at a 1 and at b 1): it is made behind harm; mend that, and explore again"
    ]
    again = lab.run(twice_if_both_fail, "go", tools=[pay], reads=[a, b], seed=1, faults=harm.faults)
    assert str(again.verdict.outcome) == "harm"
    assert again.verdict.harm == ("pay twice",)


def test_a_retry_is_explored_after_the_fault_that_brings_it_up() -> None:
    found = explored(retrying, reads=[], tries=["lost_reply", "exception"], by=["singles", "born"])
    (failure, *_) = found.failures
    assert failure.outcome == "harm"
    assert failure.cause == "lost_reply at pay 1: pay twice"
    rows = [str(row) for row in found.map.rows]
    assert "pay 1, attempt 2 (after exception at pay 1)" in rows or "pay 2 (after exception at pay 1)" in rows


def test_the_same_seed_finds_the_same_bytes_also_in_two_processes() -> None:
    one, again, apart = explored(), explored(), explored(jobs=2)
    assert data(one) == data(again) == data(apart)
    assert len({each.variation.key for each in one.trials}) == len(one.trials)


def test_a_budget_ends_it_and_each_cell_that_is_left_is_named() -> None:
    found = explored(trials=2, by=["singles"])
    assert len(found.trials) == 2
    assert found.ended == "the budget of 2 trials was spent"
    assert [str(each) for each in found.untried if "budget" in each.why] == [
        "exception at a 1: the budget of 2 trials was spent; a larger budget tries it",
        "exception at b 1: the budget of 2 trials was spent; a larger budget tries it",
    ]
    assert len(explored(trials=1).trials) == 1
    assert explored(seconds=0.000001).ended == "the budget of 1e-06 s was spent"


def test_what_does_not_apply_is_named_with_the_reason() -> None:
    found = explored(tries=["exception", "stall"], by=["singles"])
    assert {each.row for each in found.untried if each.fault == "stall"} == {"a", "b", "pay"}
    assert all(each.why.startswith("not applicable: ") for each in found.untried)


def test_progress_is_told_for_each_trial() -> None:
    told: list[str] = []
    explored(by=["singles"], tell=lambda each: told.append(str(each)))
    assert [line.partition(", about")[0] for line in told] == [
        "singles: 2 of 4 known tried, 1 distinct failure",
        "singles: 3 of 4 known tried, 1 distinct failure",
        "singles: 4 of 4 known tried, 1 distinct failure",
        "singles: 4 of 4 known and 1 again tried, 1 distinct failure",
        "confirming the failures: 4 of 4 known and 1 again tried, 1 distinct failure",
        "shrinking failure 1 of 1: 4 of 4 known and 1 again tried, 1 distinct failure",
    ]
    told = []
    explored(by=["singles"], seconds=1e-9, tell=lambda each: told.append(str(each.left_s)))
    assert set(told) <= {"0.0", "None"}


def test_trials_on_other_chance_are_told_too() -> None:
    def drawing(prompt: str) -> str:  # noqa: ARG001
        with contextlib.suppress(Exception):
            if random.random() < 2:
                pay()
        return "paid"

    told: list[SearchProgress] = []
    lab.explore(drawing, "Pay.", tools=[pay], tries=["latency"], by=["singles"], tell=told.append)
    again = [each.again for each in told if each.strategy == "singles on other chance"]
    assert len(again) > 3
    assert again == [*range(again[0], again[-1] + 1)]


def test_an_exploration_goes_on_where_it_was_and_runs_nothing_twice(tmp_path: Path) -> None:
    whole = explored()
    half = explored(trials=5, logs=tmp_path)
    assert half.folder is not None
    ran: list[str] = []
    rest = explored(logs=tmp_path, resume=half.folder, tell=lambda each: ran.append(str(each)))
    assert [each.variation.key for each in rest.trials] == [each.variation.key for each in whole.trials]
    assert [repr(each) for each in rest.failures] == [repr(each) for each in whole.failures]
    again = explored(trials=1, resume=rest.folder)  # all is known: no trial is left to run
    assert not again.ended
    assert data(again) == data(rest)


def test_the_map_lies_beside_the_log_while_it_fills_and_when_it_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explore, "MAP_S", 0.0)
    seen = list[str]()

    def looks(_: object) -> None:
        (page,) = tmp_path.glob("[!l]*/map.html")
        seen.append(page.read_text())

    found = explored(logs=tmp_path, tell=looks)
    assert all("It goes on: load this page again" in page for page in seen)
    assert "What fails is shrunk when all is tried." in seen[-1]
    assert seen[0].count('role="img"') < seen[-1].count('role="img"')
    assert found.folder is not None
    whole = (found.folder / "map.html").read_text()
    assert "It goes on" not in whole
    assert found.failures[0].cause in unescape(whole)


def test_a_log_of_another_agent_seed_question_or_none_is_refused_in_one_line(tmp_path: Path) -> None:
    folder = explored(by=["singles"], logs=tmp_path).folder
    lab.run(retrying, "go", tools=[pay], logs=tmp_path)
    (other,) = {each.parent for each in tmp_path.glob("*/info.log") if not each.parent.is_symlink()} - {folder}
    others: list[tuple[dict[str, Any], str]] = [
        ({"seed": 2}, "cannot be resumed: its seed is 1, and here it is 2"),
        ({"agent": retrying}, "cannot be resumed: its agent is"),
        ({"timeout_s": 9.0}, "cannot be resumed: its question or its options are other ones"),
        ({"resume": other}, "holds a run that is no exploration"),
        ({"resume": tmp_path / "none"}, "none"),
    ]
    for more, why in others:
        with pytest.raises((ValueError, LookupError, OSError), match=why) as refused:
            explored(**{"resume": folder, **more})
        assert "\n" not in str(refused.value)


def paying(times: Callable[[int], int]) -> Callable[[str], Any]:
    """An agent that pays so often in its first trial, its second and so on."""
    numbers = itertools.count()
    return lambda _: [pay() for _ in range(times(next(numbers)))]


def failing(prompt: str) -> str:
    raise RuntimeError(prompt)


@pytest.mark.parametrize(
    "agent",
    [paying(lambda number: 1 + number % 2), paying(lambda number: 1 + (number > 1)), failing],
    ids=["each trial is another", "it keeps state", "it fails by itself"],
)
def test_an_agent_whose_calm_trials_differ_or_fail_is_refused_in_one_line(agent: Callable[[str], Any]) -> None:
    with pytest.raises(lab.NoBaseline) as refused:
        explored(agent)
    assert "\n" not in str(refused.value)


def test_words_alone_are_no_failure_unless_says_states_what_they_mean() -> None:
    def silent(prompt: str) -> str:  # noqa: ARG001
        try:
            a()
        except Exception:  # noqa: BLE001 - any error of the tool
            return "Something went wrong, I could not look it up."
        return "All is well."

    assert not explored(silent, by=["singles"], accept=["correct"]).failures
    (found,) = explored(silent, by=["singles"], accept=["correct"], says={"*": {"undone": "could not"}}).failures
    assert found.outcome == "degraded"
    trial = lab.run(silent, "go", tools=[pay], reads=[a, b], faults=[lab.inject("exception", "a")])
    with pytest.raises(ValueError, match="the trial is unknown, which is no failure"):
        lab.shrink(trial, accept=["correct"])


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"faults": [lab.inject("exception", "a")]}, "faults= is chosen by the search"),
        ({"world": "local"}, "a search runs in virtual time"),
        ({"trials": 0}, "trials is 0"),
        ({"seconds": 0}, "seconds is 0"),
        ({"jobs": 0}, "jobs is 0"),
        ({"tries": ["excepton"]}, "tries has 'excepton'"),
        ({"by": "single"}, "by has 'single'"),
        ({"accept": ["corect"]}, "accept has 'corect'"),
    ],
)
def test_a_wrong_argument_is_told_in_one_line(more: dict[str, Any], why: str) -> None:
    with pytest.raises((ValueError, LookupError, TypeError), match=why) as refused:
        explored(**more)
    assert "\n" not in str(refused.value)


def test_an_order_of_parallel_calls_is_found_and_shrunk_to_one_swap() -> None:
    names: list[str] = []

    def read(name: str) -> str:
        names.append(name)
        return name

    async def racing(prompt: str) -> str:  # noqa: ARG001
        names.clear()
        await asyncio.gather(*(asyncio.to_thread(read, name) for name in "wxyz"))
        if names.index("y") < names.index("x"):
            pay()
        return pay()

    (failure,) = explored(racing, reads=[read], tries=["exception"], by=["orders"]).failures
    assert failure.outcome == "harm"
    assert failure.variation.order == ((1, ("read 1", "read 3", "read 2", "read 4")),)
    assert failure.cause == "the order read 1, read 3, read 2, read 4: pay twice"


def test_a_trial_is_shrunk_to_the_faults_that_it_needs() -> None:
    trial = lab.run(
        twice_if_both_fail, "go", tools=[pay], reads=[a, b], seed=1,
        faults=[lab.inject("exception", "a"), lab.inject("delay", "pay", mean_s=1.0), lab.inject("rate_limit", "b")],
    )  # fmt: skip
    found = lab.shrink(trial)
    assert found.cause == "exception at a 1 and rate_limit at b 1: pay twice"
    assert found.minimal
    assert found.reruns <= 20


def test_the_smallest_trial_of_an_agent_of_chance_is_one_that_failed() -> None:
    def agent(_: str) -> str:
        try:
            a()
        except Exception:  # noqa: BLE001
            random.random()
        try:
            b()
        except Exception:  # noqa: BLE001
            if random.random() < 0.7:
                pay()
        pay()
        return "Paid."

    faults = [lab.inject("exception", "a"), lab.inject("rate_limit", "b")]
    # Of the trials of the smallest variation the first one ends well.
    found = lab.shrink(lab.run(agent, "go", tools=[pay], reads=[a, b], seed=0, faults=faults))
    assert (found.cause, found.outcome) == ("rate_limit at b 1: pay twice", "harm")


@pytest.mark.parametrize("seed", [None, 1])
def test_a_failure_is_written_as_a_test_that_states_its_seed(seed: int | None) -> None:
    more: dict[str, Any] = {} if seed is None else {"seed": seed}
    faults = [lab.inject("exception", "a", chance=0.9, calls=[1]), lab.inject("rate_limit", ["b"], name="mine")]
    trial = lab.run(twice_if_both_fail, "go", tools=[pay], reads=[a, b], faults=faults, **more)
    told = f"seed={RunOptions.__dataclass_fields__['seed'].default if seed is None else seed}"
    assert render_found_test(trial, Variation(tuple(faults)), "A and b!") == (
        f"import chaoslab as lab\nfrom {__name__} import twice_if_both_fail, pay, a, b\n\n\ndef test_a_and_b():\n"
        f"    trial = lab.run(twice_if_both_fail, 'go', tools=[pay], reads=[a, b], {told}, faults=[\n"
        "        lab.inject('exception', 'a', chance=0.9, calls=[1]),\n"
        "        lab.inject('rate_limit', 'b', name='mine'),\n"
        '    ])\n    assert trial.outcome in ("correct", "degraded"), trial.story()\n'
    )


def test_the_turns_of_a_conversation_are_written_as_they_are_made() -> None:
    asked = lab.turns("Hi.", lab.turn("Pay.", after_s=2.0), lab.turn(reply={"sure": "Yes."}), lab.turn("Bye."))
    trial = lab.run(twice_if_both_fail, asked, tools=[pay], reads=[a, b], faults=[], twin=False)
    written = render_found_test(trial, Variation(()), "Turns")
    own = "'Hi.', lab.turn('Pay.', after_s=2.0), lab.turn(reply={'sure': 'Yes.'}), 'Bye.'"
    assert f"twice_if_both_fail, lab.turns({own})" in written


class Called:
    def __call__(self, prompt: str) -> str:
        return prompt


HELD = Called()


def test_what_an_agent_was_given_is_written_by_names_that_a_test_can_import() -> None:
    trial = lab.run(retrying, "go", tools=[pay], faults=[], twin=False)
    asked = trial.asked
    assert asked is not None

    def written(name: str = "x", order: Any = (), **other: Any) -> str:
        trial.asked = replace(asked, **other)
        return render_found_test(trial, Variation((), order), name)

    def inner(prompt: str) -> str:
        return prompt

    assert "lab.run(lab.fresh(Called), 'go', tools={'pay': pay}" in written(agent=lab.fresh(Called), tools={"pay": pay})
    assert f"from {__name__} import HELD, pay\n" in written(agent=HELD)
    method = written(agent=Called.__call__)
    assert "lab.run(Called.__call__, 'go'" in method
    assert f"from {__name__} import Called, pay\n" in method
    assert ", order={1: ['b', 'a']}, faults=[" in written(order=((1, ("b", "a")),))
    assert "\ndef test_a_b_c():\n" in written("A: b & C!")
    for nameless in (Called(), inner):
        with pytest.raises(ValueError, match="has no name that a test could import: define it in a module"):
            written(agent=nameless)


def test_a_trial_without_its_agent_cannot_be_written_as_a_test() -> None:
    trial = lab.run(retrying, "go", tools=[pay], faults=[], twin=False)
    trial.asked = None
    with pytest.raises(ValueError, match="holds no agent to run again"):
        render_found_test(trial, Variation(()), "x")
    with pytest.raises(ValueError, match="holds no agent to run again"):
        lab.shrink(trial)


def test_what_cannot_be_shrunk_is_told_in_one_line() -> None:
    calm = lab.run(retrying, "go", tools=[pay], faults=[lab.inject("exception", "pay", calls=[1])])
    with pytest.raises(ValueError, match="is correct, which is no failure"):
        lab.shrink(calm)


def test_each_attempt_knows_how_many_effects_there_were_when_it_began() -> None:
    both = next(each for each in explored().trials if len(each.made) == 4)
    assert [(made.site.tool, made.effects) for made in both.made] == [("a", 0), ("b", 0), ("pay", 0), ("pay", 1)]


def test_what_came_of_a_trial_is_read_from_its_log(tmp_path: Path) -> None:
    found = explored(by=["singles"], logs=tmp_path)
    assert found.folder is not None
    records = list(History.read(found.folder).find_events(VariationTried))
    assert [record.trial for record, _ in records] == [f"p1.r{number}" for number in range(1, len(records) + 1)]
    logged = [TriedVariation.from_json(event.tried) for _, event in records]
    assert [each for each in logged if each.by != "again"] == found.trials


def test_the_code_of_an_agent_is_its_file_s_if_there_is_one(tmp_path: Path) -> None:
    class Own:
        def __call__(self, prompt: str) -> str:
            return prompt

    class Silent:
        """No function, and none that can be called."""

    def of_itself(prompt: str) -> str:
        return prompt

    of_itself.__wrapped__ = of_itself  # type: ignore[attr-defined]
    moved = FunctionType(retrying.__code__.replace(co_filename=str(tmp_path / "gone.py")), {})
    own = hash_agent_file(retrying)
    assert own == hashlib.blake2b(Path(__file__).read_bytes(), digest_size=6).hexdigest()
    assert [hash_agent_file(agent) for agent in (Own, Silent(), itertools.count, of_itself, moved, 3)] == [
        own, own, "", "", "", "",
    ]  # fmt: skip


def test_an_exploration_is_asked_to_stop_between_two_trials(tmp_path: Path) -> None:
    def stop(_: object) -> None:
        (tmp_path / "latest" / FILE).write_text('{"stop": true}')

    with pytest.raises(KeyboardInterrupt):
        explored(logs=tmp_path, tell=stop)


def price_shop(request: Any) -> tuple[int, dict[str, int]]:  # noqa: ARG001
    return 200, {"price": 30}


def hasty(prompt: str) -> str:  # noqa: ARG001
    """Waits 0.4 s for a price, and makes one up."""
    import httpx

    try:
        return f"It costs {httpx.get('http://shop.test/price', timeout=0.4).json()['price']}."
    except httpx.TimeoutException:
        return "It costs 99."


@pytest.mark.parametrize("by", [("singles",), ("lasting",)])
def test_a_callers_timeout_is_known_before_delays_are_drawn(by: tuple[str, ...]) -> None:
    services = {"shop.test": price_shop}
    found = explored(hasty, tools=[], reads=[], services=services, tries=["latency"], by=by)
    doses = [each.variation.injections[0].choices[0].params["delay_s"] for each in found.trials if each.by in by]
    assert doses == [0.2, 0.6]
    assert [str(each.outcome) for each in found.failures] == ["wrong"]


def noisy(prompt: str) -> str:  # noqa: ARG001
    """Its work is done by a thread, which fails loudly when it is hit."""
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(pay()))
    thread.start()
    thread.join()
    print("done")
    print("done", file=sys.stderr)
    return "paid" if found else "could not pay"


def test_an_exploration_prints_nothing_of_what_agents_print(capfd: pytest.CaptureFixture[str]) -> None:
    explored(noisy, reads=[])
    assert capfd.readouterr() == ("", "")
