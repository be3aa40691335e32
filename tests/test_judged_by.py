"""A model as the judge: asked over HTTP, believed only if it gives a verdict, and written down."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.analysis.assertions import FinishedTrial
from chaoslab.analysis.opinion import Unjudged
from chaoslab.execution.asking import ask_judge_model
from chaoslab.record.rulings import RulingState
from chaoslab.scenarios.running import RulingsBook, TrialRules, rule_trial
from tests.gateway.parts import on_loopback

YES, NO = '{"holds": true, "why": "It says when."}', 'Well: {"holds": false, "why": "It names no day."}'


class Judge(BaseHTTPRequestHandler):
    """A server with OpenAI's chat completions that gives the answer `says`."""

    says: Any = YES
    status = 200
    asked: list[tuple[str, str | None, Any]]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append((self.path, self.headers.get("Authorization"), body))
        said = {"choices": [{"index": 0, "message": {"role": "assistant", "content": self.says}}]}
        sent = json.dumps(said).encode()
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Judge]]:
    """The judge on loopback, named by the variables."""
    there = type("There", (Judge,), {"asked": []})
    with HTTPServer(("127.0.0.1", 0), there) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        monkeypatch.setenv("JUDGE_URL", f"http://127.0.0.1:{server.server_port}/v1/")
        monkeypatch.setenv("JUDGE_MODEL", "a-judge")
        monkeypatch.setenv("JUDGE_KEY", "k")
        yield there
        server.shutdown()


STATED = lab.expect.judged_by("It says when the parcel comes.")


def trial(**more: Any) -> lab.Trial:
    return lab.run(lambda prompt: f"{prompt} It comes on Monday.", "Where is it?", twin=False, facts=["Monday"], **more)


def test_a_verdict_holds_or_is_a_miss_with_the_judges_words(judge: type[Judge]) -> None:
    rules = TrialRules(expect=[STATED])
    done = trial()
    assert rule_trial(rules, 1, done).state is RulingState.PASSED
    judge.says = NO
    ruling = rule_trial(rules, 1, done)
    assert ruling.state is RulingState.FAILED
    assert "the judge a-judge says no: It names no day." in ruling.reasons[0]
    path, key, body = judge.asked[0]
    assert (path, key, body["model"], body["temperature"]) == ("/v1/chat/completions", "Bearer k", "a-judge", 0)
    assert json.loads(body["messages"][1]["content"]) == {
        "statement": "It says when the parcel comes.",
        "prompt": "Where is it?",
        "answer": "Where is it? It comes on Monday.",
    }


def test_of_a_turn_the_judge_gets_the_words_of_that_turn(judge: type[Judge]) -> None:
    done = lab.run(lambda prompt: f"{prompt} On Monday.", lab.turns("Hello?", "Where is it?"), twin=False, facts=["M"])
    for turn in (1, 2):
        assert STATED.check(FinishedTrial(done.history, done.key, done.verdict, turn=turn, ask=ask_judge_model)) is None
    asked = [json.loads(body["messages"][1]["content"])["prompt"] for _, _, body in judge.asked]
    assert asked == ["Hello?", "Where is it?"]


@pytest.mark.parametrize(
    ("says", "status", "why"),
    [
        ("I think so.", 200, "the judge gave no verdict: I think so."),
        ('{"holds": "yes"}', 200, "the judge gave no verdict"),
        (None, 200, "the judge gave no verdict: None"),
        (YES, 503, "answered with status 503"),
    ],
)
def test_without_a_verdict_the_trial_is_invalid(judge: type[Judge], says: Any, status: int, why: str) -> None:
    judge.says, judge.status = says, status
    ruling = rule_trial(TrialRules(expect=[STATED]), 1, trial())
    assert ruling.state is RulingState.INVALID
    assert why in ruling.why


def test_a_reply_that_is_no_chat_completion_is_no_verdict(
    judge: type[Judge],  # noqa: ARG001 - it sets the model
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with on_loopback(lambda _, start: [start("200 OK", []), b"{}"][1:]) as url:
        monkeypatch.setenv("JUDGE_URL", url)
        ruling = rule_trial(TrialRules(expect=[STATED]), 1, trial())
    assert "gave no chat completion: {}" in ruling.why


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("", "judged_by needs JUDGE_URL and JUDGE_MODEL"),
        ("nowhere", "JUDGE_URL=nowhere should be an address"),
        ("http://127.0.0.1:1/v1", "the judge at http://127.0.0.1:1/v1 cannot be reached"),
    ],
)
def test_a_judge_that_is_not_there_is_named(url: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_URL", url)
    monkeypatch.setenv("JUDGE_MODEL", "m")
    ruling = rule_trial(TrialRules(expect=[STATED]), 1, trial())
    assert ruling.state is RulingState.INVALID
    assert why in ruling.why
    assert "\n" not in ruling.why


def test_no_answer_is_a_miss_and_nobody_is_asked(judge: type[Judge]) -> None:
    done = lab.run(lambda _: 1 / 0, "x", twin=False, facts=["1"])
    found = STATED.check(FinishedTrial(done.history, done.key, done.verdict, ask=ask_judge_model))
    assert found is not None
    assert found.text == "there is no answer"
    assert judge.asked == []


def test_prompt_and_verdict_are_written_down(judge: type[Judge], tmp_path: Path) -> None:
    judge.says = NO
    ruling = rule_trial(TrialRules(expect=[STATED]), 1, trial(logs=tmp_path))
    RulingsBook("a scenario", TrialRules(), 1).add_ruling(ruling, "")
    (text,) = (tmp_path / "latest" / "judge.jsonl").read_text().splitlines()
    said = json.loads(text)
    assert (said["trial"], said["holds"], said["reply"], said["model"]) == ("p1.r1", False, NO, "a-judge")
    assert said["messages"] == judge.asked[0][2]["messages"]


def test_it_raises_where_no_ruling_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JUDGE_URL", raising=False)
    done = trial()
    with pytest.raises(Unjudged, match="needs JUDGE_URL"):
        STATED.check(FinishedTrial(done.history, done.key, done.verdict, ask=ask_judge_model))


def test_an_assertion_asks_nobody_by_itself() -> None:
    done = trial()
    with pytest.raises(Unjudged, match="nobody can be asked here"):
        STATED.check(FinishedTrial(done.history, done.key, done.verdict))
