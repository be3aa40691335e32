"""In the local world an agent's real services stand behind a gateway, whose addresses it finds in the environment."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

import chaoslab as lab
from chaoslab.execution.upstreams import check_no_doubled_paths
from chaoslab.model import formats
from chaoslab.seams.gateway.routes import parse_routes
from tests.gateway.parts import shop
from tests.waiting import DEADLINE_S, HUNG_S, IMPATIENT_S


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with shop() as server:
        yield server.url


def impatient(_: str) -> str:
    for patience_s in (IMPATIENT_S, DEADLINE_S):  # the first may be over before its request is sent
        with suppress(httpx.TimeoutException):
            return refund(patience_s)
    return agent("")


def agent(_: str) -> str:
    return refund(HUNG_S)


def refund(patience_s: float) -> str:
    return httpx.post(os.environ["CRM_URL"] + "/refunds", json={"order": 17}, timeout=patience_s).text


WANTED = [{"effect": "POST /refunds", "order": 17}]


def test_faults_hit_the_requests_and_effects_are_judged(url: str) -> None:
    given: dict[str, Any] = {"world": "local", "upstreams": {"crm": url}, "effects": WANTED}
    assert lab.run(agent, "go", **given).outcome is lab.Outcome.CORRECT
    lost = lab.run(impatient, "go", faults=[lab.inject("lost_reply", "crm", calls=[1], attempts=[1])], **given)
    assert (lost.outcome, lost.effects) == (lab.Outcome.HARM, WANTED * 2)
    trials = list(lab.run_many(agent, "go", trials=3, faults=[lab.inject("tool_error", "crm", status=503)], **given))
    assert ["503" in trial.answer or "error" in trial.answer for trial in trials] == [True] * 3
    assert "CRM_URL" not in os.environ


def test_the_providers_variables_are_set_and_put_back(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "before")
    monkeypatch.delenv("GROQ_BASE_URL", raising=False)
    names = ("OPENAI_BASE_URL", "GROQ_BASE_URL", "MODEL_URL")
    trial = lab.run(
        lambda _: [os.environ.get(name) for name in names], "go", world="local", upstreams={"model": url}, effects=[]
    )
    openai, groq, own = trial.answer
    assert (openai, groq) == (f"{own}/v1", own)
    assert [os.environ.get(name) for name in names] == ["before", None, None]


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"upstreams": {"crm": "127.0.0.1:1"}}, "the route crm goes to '127.0.0.1:1': it should begin with http://"),
        ({"upstreams": ["crm"]}, "upstreams is ['crm']: it should be addresses by name"),
        ({"upstreams": {"crm": "http://a"}, "world": "virtual"}, "upstreams are services of real time: they need"),
        ({"upstreams": {"crm": "http://a"}, "isolate": "fork"}, "upstreams stand behind a gateway of this process"),
        (
            {"upstreams": {"crm": "http://a"}, "faults": [lab.inject("refused", "crm")]},
            "'refused on crm' refuses connections, and a gateway has taken one before it knows the route",
        ),
        (
            {"upstreams": {"crm": "http://a"}, "faults": [lab.inject("latency", "cmr")]},
            "'latency on cmr' has no function or service 'cmr' to hit: did you mean 'crm'?",
        ),
    ],
)
def test_a_mistake_is_one_line(given: dict[str, Any], line: str) -> None:
    with pytest.raises((ValueError, TypeError, LookupError)) as told:
        lab.run(agent, "go", **{"world": "local", **given})
    assert str(told.value.args[0]).startswith(line)


def test_an_upstream_that_is_down_is_named_before_a_trial_and_proves_nothing(tmp_path: Path) -> None:
    """The agent would say that it could do nothing, which is honest, and true of no fault."""
    given: dict[str, Any] = {"world": "local", "upstreams": {"crm": "http://127.0.0.1:1"}, "effects": WANTED}
    with pytest.raises(
        LookupError, match=r"^the upstream crm \(http://127.0.0.1:1\) cannot be reached: .*start it first$"
    ):
        lab.run(lambda _: "I could not do it.", "go", faults=[lab.inject("lost_reply", "crm")], logs=tmp_path, **given)


def test_an_upstream_that_dies_between_two_trials_ends_the_run() -> None:
    with ExitStack() as stack:
        server = stack.enter_context(shop())
        given: dict[str, Any] = {"world": "local", "upstreams": {"crm": server.url}, "effects": WANTED}
        trials = lab.run_many(agent, "go", trials=2, **given)
        assert next(trials).outcome is lab.Outcome.CORRECT
        stack.close()
        with pytest.raises(LookupError, match="cannot be reached"):
            next(trials)


def test_a_path_that_an_sdk_adds_itself_stands_in_no_address() -> None:
    for each in formats.PROVIDERS:
        check_no_doubled_paths(parse_routes([f"{each.name}=http://a.test/base"]))
        if each.added:
            with pytest.raises(ValueError, match=f"its SDK adds {each.added} itself: give http://a.test$"):
                check_no_doubled_paths(parse_routes([f"{each.name}=http://a.test{each.added}"]))
