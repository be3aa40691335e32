"""Runs with a foreign model or service: what was said is in the log, and the replay needs nobody to say it again."""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from werkzeug.test import Client

from chaoslab.base.clock import system
from chaoslab.cli import main
from chaoslab.config.settings import Settings
from chaoslab.config.topology import Ports
from chaoslab.core.events import CallFinished, FaultWitnessed, PromptStarted, Replied
from chaoslab.core.exchange import Reply
from chaoslab.model.endpoint import create_app
from chaoslab.record.history import History
from chaoslab.record.runs import Run
from chaoslab.wire.http1 import BODY_MAX
from chaoslab.worlds.local import LocalWorld
from tests import warm
from tests.cli_parts import command, environment, execute, free_base, warm_parts
from tests.seams.lab_parts import Heard, said, site

KEY = "gsk_N0bodyMaySeeThis"
NOW = "2026-06-01T09:00:00Z"
ASKED = [
    {"prompt": "What is 17 times 24?", "facts": ["408"]},
    {"prompt": "What's the weather in Oslo?", "facts": [{"tool": "current_weather", "arguments": {"city": "Oslo"},
                                                         "path": "main.temp"}]},
    {"prompt": "Which is warmer at the moment, Madrid or Stockholm?"},
    {"prompt": "Tell Carla that the review is in room 204."},
    {"prompt": "What is 6 times 7?"},
    {"prompt": "Who discovered penicillin?"},
]  # fmt: skip
CHOSEN = {
    "MODEL_TIMEOUT_S": "1", "TOXIC_PROB": "0.3", "MODEL_TOXIC_PROB": "0.15",
    "TOXICS": "timeout:1,reset_peer:1,latency:1",
    "TIMEOUT_MS": "40", "LATENCY_MS": "60", "JITTER_MS": "30", "ERROR_PROB": "0.2", "CONTEXT_PROB": "0.1", "SEED": "9",
    "MODEL": "a-model-of-ours",
}  # fmt: skip
Said = pytest.CaptureFixture[str]


@dataclass
class Moody:
    """A model server of somebody else's: right as a rule, and sometimes unwell, garbled, or silent."""

    moods: dict[int, Callable[[], Reply]] = field(default_factory=dict)
    released: threading.Event = field(default_factory=threading.Event)
    asked: int = 0

    def __post_init__(self) -> None:
        self._client = Client(create_app(api_key=KEY))
        self.moods = {2: self._unwell, 4: self._garbled, 7: self._silent, 9: self._unwell}
        self.moods |= {10: lambda: Reply(200, {"Content-Encoding": "gzip"}, b"{}")}
        self.moods |= {11: lambda: Reply(200, {}, bytes(BODY_MAX + 1))}

    def answer(self, heard: Heard) -> Reply:
        if heard.method == "POST":
            self.asked += 1
            if mood := self.moods.get(self.asked):
                return mood()
        reply = self._client.open(heard.path, method=heard.method, data=heard.body, headers=dict(heard.headers))
        return Reply(reply.status_code, {"Content-Type": reply.headers["Content-Type"]}, reply.data)

    def _unwell(self) -> Reply:
        return said({"error": {"message": "try later", "type": "overloaded"}}, 503)

    def _garbled(self) -> Reply:
        return Reply(200, {"Content-Type": "text/html"}, b"<p>Sign in to our \xff network</p>")

    def _silent(self) -> Reply:
        self.released.wait(20)
        return said({})


@dataclass
class Weather:
    """A real weather service: other figures each time, as no fake would give, and a key in the address."""

    asked: int = 0

    def answer(self, heard: Heard) -> Reply:
        self.asked += 1
        assert "appid=geheim" in heard.path
        value = {
            "name": "there",
            "main": {"temp": 10.0 + self.asked, "humidity": 50},
            "weather": [{"description": "mist"}],
        }
        return said(value) if self.asked % 4 else said({"cod": 500, "message": "internal"}, 500)


def ran(folder: Path, *, model: str, weather: str) -> Path:
    """A run on loopback against these two; its folder."""
    (folder / "out").mkdir()
    (folder / "mine.json").write_text(json.dumps(ASKED))
    config = folder / "config.json"
    config.write_text(json.dumps({"services": {"weather": {"url": f"{weather}/real", "key": "geheim"}}}))
    chosen = {**CHOSEN, "MODEL_URL": model, "GROQ_API_KEY": KEY, "PROMPTS": str(folder / "mine.json")}
    ports = Ports(free_base())
    variables = {**environment(), **Settings(base_port=ports.base).override(chosen).to_environment()}
    run = Run.create(folder / "logs", now=NOW)
    with LocalWorld(ports, folder / "logs", folder / "state.db", folder / "out", variables, system) as world:
        with warm_parts():
            world.start_services(now=NOW, toxiproxy=True, model=False)
        places = ("--logs", str(world.logs), "--state", str(world.state))
        ended = execute(
            command("agent", *places, "--run", run.name, "--config", str(config), python=warm.python()), env=variables
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
    return run.folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run whose model and weather have gone since."""
    moody = Moody()
    with site(moody.answer) as model, site(Weather().answer) as weather:
        run = ran(tmp_path_factory.mktemp("strangers"), model=model.url, weather=weather.url)
        moody.released.set()
    return run


def test_all_that_strangers_said_is_in_the_log_and_no_key(folder: Path) -> None:
    replies = [event for _, event in History.read(folder).find_events(Replied)]
    of_model = [event for event in replies if event.target == "model"]
    assert {200, 503} <= {event.status for event in of_model}
    assert any("Sign in to our" in event.body for event in of_model)
    assert {"timed_out", "garbled", "too_large"} <= {event.failure for event in of_model}
    assert {200, 500} <= {event.status for event in replies if event.target == "weather"}
    assert any(event.request == 0 for event in replies), "a fact was asked for"
    text = b"".join(path.read_bytes() for path in folder.glob("*"))
    assert KEY.encode() not in text
    assert b"geheim" not in text


def test_they_are_replayed_when_they_are_gone(folder: Path, capsys: Said) -> None:
    code = main(["replay", str(folder)])
    out = capsys.readouterr().out
    assert code == 0, out
    assert out.splitlines()[-1].startswith("equal: 6 trials, ")
    met = {(event.fault, event.target) for _, event in History.read(folder).find_events(FaultWitnessed)}
    assert {"model", "weather"} <= {target for _, target in met}, "with faults on their way"


def spoilt(folder: Path, tmp_path: Path, how: Callable[[dict[str, object]], dict[str, object] | None]) -> str:
    """A copy of the run with its info.log rewritten; its name."""
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in folder.glob("*.log"):
        (copy / path.name).write_bytes(path.read_bytes())
    kept = [how(json.loads(line)) for line in (folder / "info.log").read_text().splitlines()]
    (copy / "info.log").write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in kept if line))
    return str(copy)


def test_a_reply_that_was_deleted_is_missed_at_once(folder: Path, tmp_path: Path, capsys: Said) -> None:
    finished = [
        (record.trial, event) for record, event in History.read(folder).find_events(CallFinished)
        if event.target == "model" and event.ok and event.attempt == 1
    ]  # fmt: skip
    trial, lost = finished[-1]

    def without(line: dict[str, object]) -> dict[str, object] | None:
        gone = {"kind": "replied", "trial": trial, "target": "model", "request": lost.request, "attempt": 1}
        return None if gone.items() <= line.items() else line

    assert main(["replay", spoilt(folder, tmp_path, without)]) == 2
    place = f"model {lost.request}.1 in {trial}"
    assert capsys.readouterr().err == (
        f"the log holds no reply of the model for {place}, though one came: it was deleted, and nobody could make it "
        "say the same again\n"
    )


def test_what_a_model_was_never_asked_is_not_answered_in_its_name(folder: Path, tmp_path: Path, capsys: Said) -> None:
    """As after a change of the agent's words."""

    def otherwise(line: dict[str, object]) -> dict[str, object]:
        return (
            {**line, "asked": "0123456789abcdef"} if line["kind"] == "replied" and line["target"] == "model" else line
        )

    assert main(["replay", spoilt(folder, tmp_path, otherwise), "--trial", "1"]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[-2] == "p1.r1  the log holds no reply of the model for model 1.1: it was never asked that"


def test_a_fact_that_the_real_service_told_is_told_again(folder: Path) -> None:
    started = [event for _, event in History.read(folder).find_events(PromptStarted)]
    assert started[1].facts, "it was learnt from the service itself"
    assert started[1].stated
