"""Models at the services of a user's agent: real SDKs, each provider's own errors, usage, budgets and context."""

import asyncio
import json
import pickle
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import httpx
import pytest

import chaoslab as lab
from chaoslab.core.events import Budget, CallFinished, CallStarted, Effect, FaultWitnessed, Usage
from chaoslab.record.history import History
from tests.reports.fake_run import summary
from tests.seams.model_parts import (
    AGENTS,
    ANTHROPIC,
    GROQ,
    OPENAI,
    by_anthropic_stream,
    by_openai_chat,
    by_openai_stream,
    refund,
)
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)

PROMPT = "Refund order 17"
STEPS = [lab.call("refund", order=17), "Order 17 is\n refunded."]


def trial_of(agent: str | Callable[..., str], host: str = OPENAI, *, steps: Any = None, **options: Any) -> lab.Trial:
    """One trial of an agent whose model follows the script."""
    if isinstance(agent, str):
        agent, host = AGENTS[agent]
    model = lab.scripted(STEPS if steps is None else steps)
    return lab.run(agent, PROMPT, **{"services": {host: model}, "tools": [refund], **options})


def once(fault: str, host: str, **more: Any) -> Any:
    return lab.inject(fault, host, **{"calls": [1], **more})


def witnessed(trial: lab.Trial) -> list[str]:
    return [event.evidence for _, event in trial.history.find_events(FaultWitnessed)]


# Answers.


@pytest.mark.parametrize("agent", AGENTS)
def test_a_script_drives_each_sdk_through_tool_and_answer(agent: str) -> None:
    trial = trial_of(agent)
    assert trial.answer == "Order 17 is\n refunded."
    assert trial.effects == [{"effect": "refund", "order": 17}]
    assert (trial.ok, trial.warnings) == (True, ())


@pytest.mark.parametrize("agent", AGENTS)
def test_the_offline_model_drives_each_sdk_to_one_answer(agent: str) -> None:
    ask, host = AGENTS[agent]
    trial = lab.run(ask, PROMPT, services={host: lab.offline_model()}, tools=[refund])
    assert trial.answer == "Refund: order 17 is refunded."
    assert trial.effects == [{"effect": "refund", "order": 17}]


@pytest.mark.parametrize("agent", AGENTS)
def test_what_an_answer_used_is_noted_as_the_models_usage(agent: str) -> None:
    trial = trial_of(agent)
    used = [event for _, event in trial.history.find_events(Usage)]
    assert [event.request for event in used] == [1, 2]
    assert all(event.prompt_tokens > 10 and event.completion_tokens > 3 for event in used)
    prices = {"gpt-4o": (2.5, 10.0), "claude-haiku-4-5-20251001": (1.0, 5.0), "openai/gpt-oss-20b": (0.075, 0.3)}
    for event in used:
        each_in, each_out = prices[event.model]
        cost = (event.prompt_tokens * each_in + event.completion_tokens * each_out) / 1e6
        assert event.cost_usd == pytest.approx(cost)
    assert trial._result.run_spent_usd == pytest.approx(sum(event.cost_usd or 0 for event in used))


def test_equal_conversations_cost_equal_tokens_in_all_formats() -> None:
    for name in AGENTS:
        used = [event for _, event in trial_of(name).history.find_events(Usage)]
        assert [event.completion_tokens for event in used] == [26, 6]
        assert [event.prompt_tokens for event in used] == [56, pytest.approx(95, abs=1)]  # the calls' ids differ


def test_a_stream_tells_when_its_first_token_came() -> None:
    model = lab.scripted(STEPS, token_s=0.5)
    trial = lab.run(by_anthropic_stream, PROMPT, services={ANTHROPIC: model}, tools=[refund])
    first, last = (
        (e.first_byte_s, e.last_byte_s) for _, e in trial.history.find_events(CallFinished) if e.target == ANTHROPIC
    )
    assert first[0] == last[0] == pytest.approx(0.0, abs=0.01)
    assert last[1] == pytest.approx(0.5 * 9, abs=0.01)  # start, block, ping, four words, block, delta, stop


def test_a_request_to_a_model_is_no_effect_and_its_log_is_short() -> None:
    trial = trial_of("openai chat")
    assert [event.target for _, event in trial.history.find_events(Effect)] == ["refund"]
    asked = [event.arguments for _, event in trial.history.find_events(CallStarted) if event.at.target == OPENAI]
    assert asked == [{"messages": 1}, {"messages": 3}]
    said = [event.reply for _, event in trial.history.find_events(CallFinished) if event.at.target == OPENAI]
    assert said == ['calls refund({"order": 17})', "Order 17 is refunded."]


# Errors: the SDK raises its own exception for what the lab answers.


def named(error: BaseException | None) -> str:
    return f"{type(error).__module__.partition('.')[0]}.{type(error).__name__}"


@pytest.mark.parametrize("agent", ["openai chat", "openai responses", "anthropic", "groq", "openai chat stream"])
@pytest.mark.parametrize(
    ("status", "name"),
    [
        (400, "BadRequestError"),
        (401, "AuthenticationError"),
        (403, "PermissionDeniedError"),
        (404, "NotFoundError"),
        (429, "RateLimitError"),
        (500, "InternalServerError"),
        (503, "InternalServerError"),
        (529, "InternalServerError"),
    ],
)
def test_each_status_is_raised_as_the_sdks_own_error(agent: str, status: int, name: str) -> None:
    package, host = agent.partition(" ")[0], AGENTS[agent][1]
    trial = trial_of(agent, faults=[lab.inject("tool_error", host, status=status)], twin=False)
    if package == "anthropic":  # its SDK knows these two
        name = {503: "ServiceUnavailableError", 529: "OverloadedError"}.get(status, name)
    assert named(trial.error) == f"{package}.{name}"
    attempts = sum(1 for _ in trial.history.find_events(CallFinished))
    assert attempts == (3 if status == 429 or status >= 500 else 1)
    assert witnessed(trial) == [f"the service's own error {status} reached the caller"] * attempts
    kind = getattr(trial.error, "body", {}) or {}
    assert isinstance(kind, dict)
    assert kind.get("message") or kind["error"]["message"]


def test_an_error_has_the_words_of_its_provider() -> None:
    body = trial_of("anthropic", faults=[lab.inject("tool_error", ANTHROPIC, status=529)], twin=False).error
    found = getattr(body, "body", None)
    assert found == {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    limit = trial_of("openai chat", faults=[lab.inject("tool_error", OPENAI, status=429)], twin=False).error
    assert (getattr(limit, "code", ""), getattr(limit, "type", "")) == ("rate_limit_exceeded", "requests")
    groq = trial_of("groq", faults=[lab.inject("tool_error", GROQ, status=429)], twin=False).error
    assert getattr(groq, "body", {})["error"]["type"] == "tokens"


@pytest.mark.parametrize("agent", ["openai chat", "anthropic", "groq"])
def test_the_sdk_waits_as_long_as_retry_after_says(agent: str) -> None:
    trial = trial_of(agent, faults=[once("tool_error", AGENTS[agent][1], status=429, retry_after_s=7)])
    assert trial.ok
    assert 7 <= trial.seconds < 9  # the SDKs add some jitter
    assert trial.answer == "Order 17 is\n refunded."


@pytest.mark.parametrize(
    ("fault", "package", "name"),
    [
        ("timeout", "openai", "APITimeoutError"),
        ("timeout", "anthropic", "APITimeoutError"),
        ("lost_reply", "anthropic", "APITimeoutError"),
        ("reset_peer", "openai", "APIConnectionError"),
        ("refused", "anthropic", "APIConnectionError"),
    ],
)
def test_a_connection_that_fails_is_the_sdks_own_error_too(fault: str, package: str, name: str) -> None:
    ask, host = AGENTS["openai chat" if package == "openai" else package]
    trial = trial_of(lambda prompt: ask(prompt, timeout=20.0), host, faults=[lab.inject(fault, host)], twin=False)
    assert named(trial.error) == f"{package}.{name}"
    assert len(witnessed(trial)) == 3


@pytest.mark.parametrize("agent", ["openai chat", "openai responses", "anthropic", "groq"])
@pytest.mark.parametrize("fault", ["html_instead_of_json", "empty_response"])
def test_an_answer_that_is_no_json_reaches_the_sdk_and_uses_up_no_step(agent: str, fault: str) -> None:
    ask, host = AGENTS[agent]

    def patient(prompt: str) -> str:
        try:
            return ask(prompt)
        except Exception:  # noqa: BLE001 - each SDK has errors of its own for it
            return ask(prompt)

    trial = trial_of(patient, host, faults=[once(fault, host)])
    assert trial.answer == "Order 17 is\n refunded."
    assert trial.warnings == ()
    assert len(witnessed(trial)) == 1
    first = next(event for _, event in trial.history.find_events(CallFinished))
    assert (first.ok, first.error) == (False, "status 200, and no JSON")


# Streams.


def test_a_cut_stream_is_a_silently_truncated_answer_of_openai() -> None:
    steps = ["The refund of order 17 was not possible today."]
    trial = trial_of("openai chat stream", steps=steps, faults=[once("cut", OPENAI, after_events=4)], tools=[])
    assert trial.answer == "The refund of"
    assert witnessed(trial) == ["the answer ended after 4 events, without [DONE]"]
    assert trial.outcome is lab.Outcome.UNKNOWN
    assert (trial.why, trial.verdict.correct) == ("nothing certain tells if the answer is right", None)


def test_a_cut_stream_leaves_half_a_message_of_anthropic() -> None:
    steps = ["The refund of order 17 was not possible today."]
    trial = trial_of("anthropic stream", steps=steps, faults=[once("cut", ANTHROPIC, after_events=5)], tools=[])
    assert trial.answer == "The refund"
    assert not trial.ok


def test_a_cut_stream_gets_its_step_again() -> None:
    def careful(prompt: str) -> str:
        said = by_openai_stream(prompt)
        return said if said.endswith(".") else by_openai_stream(prompt)

    trial = trial_of(careful, steps=["It is done."], faults=[once("cut", OPENAI, after_events=2)], tools=[])
    assert trial.answer == "It is done."
    assert trial.warnings == ()


@pytest.mark.parametrize("agent", ["openai chat stream", "openai responses stream", "anthropic stream"])
def test_a_stalled_stream_times_out_at_the_sdk(agent: str) -> None:
    ask, host = AGENTS[agent]
    fault = once("stall", host, after_events=3)
    trial = trial_of(lambda prompt: ask(prompt, timeout=20.0), host, faults=[fault], tools=[], steps=["a b c d"])
    assert "Timeout" in type(trial.error).__name__
    assert trial.seconds == pytest.approx(20, abs=0.1)
    assert len(witnessed(trial)) == 1


def test_a_stream_that_ends_cleanly_leaves_no_attempt_open() -> None:
    for agent in ("anthropic stream", "openai responses stream", "openai chat stream"):
        assert all(event.ok for _, event in trial_of(agent).history.find_events(CallFinished))


# Scripts.


def test_a_retry_after_a_lost_answer_gets_the_same_step() -> None:
    ask, host = AGENTS["openai chat"]
    fault = once("lost_reply", host)
    trial = trial_of(lambda prompt: ask(prompt, timeout=20.0), host, faults=[fault])
    assert trial.answer == "Order 17 is\n refunded."
    assert trial.effects == [{"effect": "refund", "order": 17}]
    assert trial.seconds > 20


def test_the_same_request_after_an_answer_gets_the_next_step() -> None:
    def twice(prompt: str) -> str:
        return f"{by_openai_chat(prompt)} {by_openai_chat(prompt)}"

    assert trial_of(twice, steps=["one", "two"], tools=[]).answer == "one two"


def test_several_calls_of_one_step_are_made_at_once() -> None:
    calls = ["I refund both.", lab.call("refund", order=17), lab.call("refund", order=18)]
    for agent in AGENTS:
        trial = trial_of(agent, steps=[calls, "Both."])
        assert trial.effects == [{"effect": "refund", "order": 17}, {"effect": "refund", "order": 18}]
        assert trial.answer == "Both."


def test_an_error_of_a_script_is_used_up_when_it_is_given() -> None:
    for agent in ("openai chat", "anthropic", "openai responses stream"):
        trial = trial_of(agent, steps=[{"error": 503}, {"error": 429}, *STEPS])
        assert trial.answer == "Order 17 is\n refunded."
    trial = trial_of("anthropic", steps=[{"error": 400, "message": "no such beta"}], twin=False)
    assert "no such beta" in str(trial.error)


@pytest.mark.parametrize("agent", AGENTS)
def test_a_script_that_runs_out_is_said_in_one_line(agent: str) -> None:
    trial = trial_of(agent, steps=STEPS[:1], twin=False)
    host = AGENTS[agent][1]
    assert named(trial.error).endswith(".BadRequestError")
    said = (
        f'the script of {host} ran out after 1 step: request 2 has no step, its last message is "order 17 is refunded"'
    )
    assert said in trial.warnings
    assert said in str(trial.error)


def test_each_trial_begins_the_script_anew() -> None:
    model = lab.scripted(STEPS)
    trials = list(lab.run_many(by_openai_chat, PROMPT, trials=3, services={OPENAI: model}, tools=[refund]))
    assert [trial.answer for trial in trials] == ["Order 17 is\n refunded."] * 3


def test_only_an_answer_that_came_is_said_by_a_script() -> None:
    def agent(_: str) -> list[int]:
        asked = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
        return [httpx.post(f"https://{OPENAI}/v1/chat/completions", json=asked).status_code for _ in range(2)]

    fault = lab.inject("tool_error", OPENAI, calls=[1], status=503)
    trial = lab.run(agent, "go", services={OPENAI: lab.scripted(["Hello."])}, faults=[fault], twin=False)
    assert trial.answer == [503, 200]
    assert [event.said_by for _, event in trial.history.find_events(CallFinished)] == [None, "script"]


def test_a_script_works_in_several_processes() -> None:
    model = lab.scripted(STEPS)
    many = lab.run_many(by_openai_chat, PROMPT, trials=2, jobs=2, services={OPENAI: model}, tools=[refund])
    assert [trial.answer for trial in many] == ["Order 17 is\n refunded."] * 2


@pytest.mark.parametrize(
    ("steps", "kind", "said"),
    [
        ([], ValueError, "the script is empty: it should have at least one step, each lab.call("),
        ("done", TypeError, "the script is 'done': it should be a list of steps"),
        (["a", 17], TypeError, "step 2 of the script is 17: it should be lab.call("),
        ([[]], TypeError, "step 1 of the script is []: it should be"),
        ([{"error": 200}], ValueError, "step 1 of the script is {'error': 200}: an error should be a status from 400"),
        ([{"status": 500}], ValueError, 'an error should be a status from 400 to 599, as in {"error": 429}'),
        (["\ud800"], ValueError, "step 1 of the script has half a surrogate pair"),
    ],
)
def test_a_wrong_script_is_refused_in_one_line(steps: Any, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind) as caught:
        lab.scripted(steps)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_wrong_call_or_pace_is_refused_in_one_line() -> None:
    with pytest.raises(ValueError, match=r"on_failure is '\{it\}': it should be a text"):
        lab.scripted(["Done."], on_failure="{it}")
    with pytest.raises(TypeError, match=r"order of the call of refund is <object .*it should be JSON"):
        lab.call("refund", order=object())
    with pytest.raises(TypeError, match="call has '' as its tool"):
        lab.call("")
    with pytest.raises(ValueError, match="token_s is -1: it should be a number of seconds"):
        lab.offline_model(token_s=-1)


# Budgets, context, and models that are not the lab's.


def test_a_budget_of_tokens_ends_in_the_providers_own_words() -> None:
    words = {"openai chat": "exceeded your current quota", "anthropic": "credit balance is too low"}
    for agent, said in words.items():
        trial = trial_of(agent, faults=[lab.inject("budget", AGENTS[agent][1], tokens=20)])
        assert said in str(trial.error)
        (event,) = [event for _, event in trial.history.find_events(Budget)]
        assert (event.limit, event.allowed) == ("tokens", 20)
        assert sum(1 for _ in trial.history.find_events(Usage)) == 1


def test_a_budget_in_dollars_counts_over_the_run() -> None:
    (alone,) = lab.run_many(by_openai_chat, PROMPT, trials=1, services={OPENAI: lab.scripted(STEPS)}, tools=[refund])
    cost = alone._result.run_spent_usd
    assert cost > 0
    limit = lab.inject("budget", OPENAI, cost_usd=1.5 * cost)
    trials = list(
        lab.run_many(
            by_openai_chat, PROMPT, trials=3, services={OPENAI: lab.scripted(STEPS)}, tools=[refund], faults=[limit]
        )
    )
    assert [trial.error is None for trial in trials] == [True, False, False]
    assert trials[1]._result.run_spent_usd > 1.5 * cost > trials[0]._result.run_spent_usd


def test_a_budget_of_calls_stops_an_agent_that_does_not_stop() -> None:
    steps = [lab.call("refund", order=n) for n in range(5)]
    trial = trial_of("openai responses", steps=steps, faults=[lab.inject("budget", OPENAI, calls_max=6)], twin=False)
    assert named(trial.error) == "openai.RateLimitError"
    assert len(trial.effects) == 3


@pytest.mark.filterwarnings("ignore:.*changed nothing:chaoslab.NothingHit")
@pytest.mark.parametrize("agent", ["openai chat", "openai responses stream", "anthropic", "groq"])
def test_a_truncated_context_loses_the_request(agent: str) -> None:
    ask, host = AGENTS[agent]
    fault = lab.inject("truncate_context", host, calls=[2])
    trial = lab.run(ask, PROMPT, services={host: lab.offline_model()}, tools=[refund], faults=[fault])
    if agent == "openai responses stream":  # a call may not come without the message before it
        assert (trial.ok, witnessed(trial)) == (True, [])
        return
    assert "the request is no longer in what I was sent" in trial.answer
    assert witnessed(trial) == ["the model was sent 2 messages"]


def test_the_context_of_a_request_that_has_none_is_left_alone() -> None:
    def agent(_: str) -> str:
        import openai

        client = openai.OpenAI(base_url=f"http://{OPENAI}/v1", api_key="none")
        return f"{len(list(client.models.list())) > 3} {client.models.retrieve('gpt-4o').id}"

    with pytest.warns(lab.NothingHit, match="the calls to api.openai.com were GET /v1/models, GET /v1/models/gpt-4o"):
        trial = lab.run(
            agent, PROMPT, services={OPENAI: lab.offline_model()}, faults=[lab.inject("truncate_context", OPENAI)]
        )
    assert (trial.answer, trial.outcome) == ("True gpt-4o", lab.Outcome.CORRECT)


def own_model(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """A user's own fake for a model."""
    asked = json.loads(environ["wsgi.input"].read())
    message = {"role": "assistant", "content": f"You said {asked['messages'][-1]['content']}."}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
    body = {"id": "1", "object": "chat.completion", "model": asked["model"], "choices": [choice], "usage": usage}
    text = json.dumps({**body, "created": 0}).encode()
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(text)))])
    return [text]


def test_models_names_a_service_that_speaks_a_models_api(tmp_path: Path) -> None:
    trial = lab.run(by_openai_chat, PROMPT, services={OPENAI: own_model}, models=[OPENAI], logs=tmp_path)
    assert trial.answer == "You said Refund order 17."
    assert trial._result.run_spent_usd == pytest.approx(0.0035)
    assert trial.effects == []
    unnamed = lab.run(by_openai_chat, PROMPT, services={OPENAI: own_model})
    assert (len(unnamed.effects), unnamed._result.run_spent_usd) == (1, 0.0)


def test_models_that_name_no_service_are_refused_in_one_line() -> None:
    for models, kind, said in (
        (
            ["api.opnai.com"],
            LookupError,
            "models names 'api.opnai.com', which is no service: did you mean 'api.openai.com'?",
        ),
        (OPENAI, TypeError, "models is 'api.openai.com': it should be a list, as in ['api.openai.com']"),
        ([17], LookupError, "models names 17, which is no service"),
    ):
        with pytest.raises(kind) as caught:
            lab.run(by_openai_chat, PROMPT, services={OPENAI: own_model}, models=models)  # type: ignore[arg-type]
        assert said in str(caught.value)


def test_faults_of_the_context_need_a_model() -> None:
    with pytest.raises(ValueError, match="truncate_context works on the messages that a model is sent, and refund is"):
        lab.run(
            by_openai_chat, PROMPT, services={OPENAI: own_model}, models=[OPENAI], tools=[refund],
            faults=[lab.inject("truncate_context", "*")],
        )  # fmt: skip


def test_the_summary_adds_up_what_the_model_used(tmp_path: Path) -> None:
    trial_of("openai chat", logs=tmp_path)
    (run,) = (each for each in tmp_path.iterdir() if each.is_dir() and not each.is_symlink())
    text = summary(History.read(run))
    assert "Calls: 3 to tools and services; 0 failed" in text
    assert "Usage: 151 tokens to the model, 32 from it, in 2 answers; 0.000697 USD" in text


def test_a_model_can_be_sent_to_another_process() -> None:
    for model in (lab.scripted(STEPS), lab.offline_model()):
        model.begin_trial("host", "p1.r1", lambda _: None)
        assert type(pickle.loads(pickle.dumps(model))) is type(model)


def test_models_of_async_clients_answer_at_once() -> None:
    async def agent(prompt: str) -> str:
        import anthropic

        async with anthropic.AsyncAnthropic(base_url=f"http://{ANTHROPIC}", api_key="none") as client:
            asked: Any = {"model": "claude-haiku-4-5", "max_tokens": 9}
            asking = (
                client.messages.create(messages=[{"role": "user", "content": f"{prompt} {n}"}], **asked)
                for n in range(3)
            )
            return " ".join(str(getattr(reply.content[0], "text", "")) for reply in await asyncio.gather(*asking))

    trial = lab.run(agent, "Say", services={ANTHROPIC: lab.scripted(["one", "two", "three"])})
    assert (trial.answer, trial.outcome) == ("one two three", lab.Outcome.CORRECT)
