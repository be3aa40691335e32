"""Models that answer from the log of an earlier run."""

import io
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.base.identity import hash_value
from chaoslab.core.events import FaultWitnessed, PromptStarted, Replied, RunStarted
from chaoslab.core.exchange import Failure
from chaoslab.model.app import ModelApp
from chaoslab.record.runs import Run
from tests.model.test_formats import CHAT, asked
from tests.seams.model_parts import AGENTS, OPENAI, by_openai_chat, by_openai_stream, refund
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)

PROMPT = "Refund order 17"


class Foreign:
    """A model that is not the lab's own, as far as the lab can tell. It counts its requests."""

    def __init__(self, model: ModelApp) -> None:
        self.model, self.asked = model, 0

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        self.asked += 1
        return self.model(environ, start_response)


def folder_of(logs: Path) -> Path:
    (folder,) = (each for each in logs.iterdir() if each.is_dir() and not each.is_symlink())
    return folder


def first_run(agent: str, logs: Path, *, faults: Any = ()) -> Path:
    """The folder of a run with a model that is not the lab's own."""
    ask, host = AGENTS[agent]
    model = Foreign(lab.offline_model())
    trial = lab.run(
        ask, PROMPT, services={host: model}, models=[host], tools=[refund], faults=faults, logs=logs, twin=False,
        effects=[{"effect": "refund", "order": 17}],
    )  # fmt: skip
    assert (trial.outcome, model.asked) == (lab.Outcome.CORRECT, 2)
    return folder_of(logs)


@pytest.mark.parametrize("agent", AGENTS)
def test_a_log_answers_as_the_model_did(agent: str, tmp_path: Path) -> None:
    run = first_run(agent, tmp_path)
    ask, host = AGENTS[agent]
    trial = lab.run(ask, PROMPT, services={host: lab.recorded(run)}, tools=[refund])
    assert (trial.answer, trial.warnings) == ("Refund: order 17 is refunded.", ())
    assert trial.effects == [{"effect": "refund", "order": 17}]
    assert trial._result.run_spent_usd > 0


def test_what_a_fault_changed_is_recorded_as_it_was(tmp_path: Path) -> None:
    run = first_run("openai chat stream", tmp_path, faults=[lab.inject("slow_chunks", OPENAI, delay_s=0.1)])
    trial = lab.run(by_openai_stream, PROMPT, services={OPENAI: lab.recorded(run)}, tools=[refund])
    assert trial.answer == "Refund: order 17 is refunded."
    assert trial.seconds < 0.1


def test_faults_hit_recorded_answers_too(tmp_path: Path) -> None:
    run = first_run("openai chat stream", tmp_path)
    cut = lab.inject("cut", OPENAI, calls=[2], after_events=3)
    trial = lab.run(by_openai_stream, PROMPT, services={OPENAI: lab.recorded(run)}, tools=[refund], faults=[cut])
    assert trial.answer == "Refund: order"
    assert [event.fault for _, event in trial.history.find_events(FaultWitnessed)] == ["cut"]


def test_a_request_that_the_log_does_not_hold_is_said_in_one_line(tmp_path: Path) -> None:
    run = first_run("openai chat", tmp_path)
    services = {OPENAI: lab.recorded(run)}
    trial = lab.run(by_openai_chat, "Refund order 18", services=services, tools=[refund], twin=False)
    said = f"the log of {run} holds no answer of {OPENAI} to this request: "
    assert any(warning.startswith(said) and "\n" not in warning for warning in trial.warnings)
    differs = "messages[0] user: Refund order 17 → user: Refund order 18"
    assert f"; the nearest is request 1 of p1.r1, which differs: {differs}" in str(trial.error)
    assert type(trial.error).__name__ == "BadRequestError"
    assert said in str(trial.error)


def test_answers_to_one_request_come_in_their_order(tmp_path: Path) -> None:
    """A log like that of the lab's own agent, whose model first refused."""
    asked = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    said = {"id": "1", "object": "chat.completion", "created": 0, "model": "m"}
    choices = [{"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}]
    run = Run("mine", tmp_path / "mine", 0.0, "2026-06-01T09:00:00Z")
    with run.open_log("info") as info:
        info.write(RunStarted(seed=1, settings={}, plan={}, prompts=1, now=run.now, model="m"))
        info.write(PromptStarted(prompt_index=1, prompt="hi"), trial="p1.r1")
        for attempt, (status, body) in enumerate(
            [(429, {"error": {"message": "busy"}}), (200, {**said, "choices": choices})]
        ):
            info.write(
                Replied(
                    target="model", request=1, attempt=attempt, asked=hash_value(asked), status=status,
                    content_type="application/json", body=json.dumps(body), headers={"retry-after": "3"},
                ),
                trial="p1.r1",
            )  # fmt: skip

    def agent(_: str) -> str:
        import openai

        client: Any = openai.OpenAI(base_url=f"http://{OPENAI}/v1", api_key="none")
        return str(client.chat.completions.create(**asked).choices[0].message.content)

    trial = lab.run(agent, "hi", services={OPENAI: lab.recorded(run.folder)})
    assert trial.answer == "Hello."
    assert 3 <= trial.seconds < 4


def test_an_answer_that_failed_or_broke_off_does_so_again(tmp_path: Path) -> None:
    run = Run("mine", tmp_path / "mine", 0.0, "2026-06-01T09:00:00Z")
    with run.open_log("info") as info:
        info.write(PromptStarted(prompt_index=1, prompt="hi"), trial="p1.r1")
        for status, body in ((0, ""), (200, "data: 1\n\ndata: 2")):
            info.write(
                Replied(target="model", request=1, attempt=0, asked=hash_value({}), status=status, failure="timed_out",
                        content_type="text/event-stream", body=body),
            )  # fmt: skip
    model = lab.recorded(run.folder)
    with pytest.raises(Failure, match="timed_out"):
        asked(model, CHAT, {})
    came: list[bytes] = []
    environ = {"PATH_INFO": CHAT, "REQUEST_METHOD": "POST", "wsgi.input": io.BytesIO(b"{}"), "CONTENT_LENGTH": "2"}
    with pytest.raises(Failure, match="closed"):
        came.extend(model(environ, lambda *_: None))
    assert came == [b"data: 1\n\n", b"data: 2"]
    for method, sent, words in (
        ("GET", b"", "GET /v1/chat"),
        ("POST", b"{", "no JSON"),
        ("POST", b"[]", "request: []"),
    ):
        status, _, text = asked(model, CHAT, sent, method=method)
        assert (status, words in json.loads(text)["error"]["message"]) == (400, True)


def test_a_run_that_cannot_answer_is_refused_in_one_line(tmp_path: Path) -> None:
    run = first_run("openai chat", tmp_path)
    wrong = run.with_name(run.name[:-1] + "x")
    with pytest.raises(LookupError, match=rf"is called '.*{wrong.name}': did you mean '{run.name}'\?"):
        lab.recorded(wrong)
    with pytest.raises(LookupError, match=r"holds no answers of 'api.opnai.com': did you mean 'api.openai.com'\?"):
        lab.recorded(run, target="api.opnai.com")
    with pytest.raises(TypeError, match="recorded is given 17: it should be a run's folder"):
        lab.recorded(17)  # type: ignore[arg-type]
    lab.run(lambda _: "hi", "hi", logs=tmp_path / "silent")
    with pytest.raises(LookupError, match="holds no answers of a model: it keeps those of services named by models="):
        lab.recorded(folder_of(tmp_path / "silent"))


def test_of_several_services_the_one_of_the_same_name_answers(tmp_path: Path) -> None:
    def both(prompt: str) -> str:
        return f"{AGENTS['openai chat'][0](prompt)} {AGENTS['anthropic'][0](prompt)}"

    hosts = [AGENTS["openai chat"][1], AGENTS["anthropic"][1]]
    models: dict[str, Any] = {host: Foreign(lab.offline_model()) for host in hosts}
    lab.run(both, PROMPT, services=models, models=hosts, tools=[refund], logs=tmp_path, twin=False)
    one = lab.recorded(folder_of(tmp_path))
    with pytest.raises(ValueError, match=r"one model as 'api.openai.com' and 'api.anthropic.com': each needs"):
        lab.run(both, PROMPT, services=dict.fromkeys(hosts, one), tools=[refund])
    services = {host: lab.recorded(folder_of(tmp_path)) for host in hosts}
    answer = lab.run(both, PROMPT, services=services, tools=[refund], twin=False).answer
    assert answer == " ".join(["Refund: order 17 is refunded."] * 2)
    with pytest.raises(
        LookupError, match=r"no answers of 'other', but of api.anthropic.com, api.openai.com: choose one"
    ):
        lab.run(by_openai_chat, PROMPT, services={"other": lab.recorded(folder_of(tmp_path))})
