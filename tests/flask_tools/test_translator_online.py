"""The translator asks a LibreTranslate server that was named, and no other; what goes wrong there is said in the
service's own words.

The server is one of our own on loopback. No connection to any other address is let through, and each is counted.
"""

import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from flask.testing import FlaskClient

from chaoslab.base.clock import system
from chaoslab.base.extras import install_line
from chaoslab.cli import main
from chaoslab.config.settings import SettingError, Settings
from chaoslab.config.topology import Ports
from chaoslab.core.events import PromptFinished, RunStarted
from chaoslab.core.exchange import Reply
from chaoslab.flask_tools import translator
from chaoslab.flask_tools.app import app_of
from chaoslab.flask_tools.ledger import Folders
from chaoslab.flask_tools.service_module import Refusal, ServiceModule
from chaoslab.flask_tools.translator_online import AT_ONCE_MAX, Online
from chaoslab.record.history import History
from chaoslab.record.runs import Run
from chaoslab.worlds.local import Local
from tests.cli_parts import chaoslab, environment, free_base, prompts
from tests.flask_tools.service_parts import NOW, trial
from tests.seams.lab_parts import Heard, said, site

KEY = "s3cret-translator-key"
BOOK = {"Good night": "Bonne nuit", "one": "un", "two": "deux", "Moin": "Hello"}


@dataclass
class FarEnd:
    """A LibreTranslate server; `script` is what it answers instead, `hold` keeps it from answering until it is set."""

    url: str = ""
    asked: list[dict[str, str]] = field(default_factory=list)
    script: Reply | None = None
    hold: threading.Event | None = None

    def answer(self, heard: Heard) -> Reply:
        parts = urlsplit(heard.path)
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self.asked.append({"path": parts.path} | asked)
        if self.hold is not None:
            self.hold.wait(20)
        return self.script or said({"translatedText": BOOK.get(asked["q"], asked["q"])})


@pytest.fixture
def far_end() -> Iterator[FarEnd]:
    end = FarEnd()
    with site(end.answer) as server:
        end.url = server.url
        yield end
        if end.hold is not None:
            end.hold.set()


@pytest.fixture(autouse=True)
def places(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that this process connected to; anywhere but loopback is refused."""
    seen: list[str] = []
    real: Callable[[socket.socket, Any], None] = socket.socket.connect

    def connect(self: socket.socket, address: Any) -> None:
        seen.append(address[0])
        if address[0] != "127.0.0.1":
            raise OSError(f"{address[0]} is not loopback")
        real(self, address)

    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setenv("NO_PROXY", "*")
    return seen


@contextmanager
def serving(logs: Path, online: Online) -> Iterator[FlaskClient]:
    """The translator over this server, however soon that gives up."""
    routes = tuple(
        type(route)(route.method, route.path, route.tool, lambda ask: translator._translate(ask, online=online))
        for route in translator.routes()
    )
    app = app_of(ServiceModule(translator.SERVICE, routes, translator.wording, ()), Folders(logs, NOW))
    try:
        yield app.test_client()
    finally:
        app.extensions["ledger"].close()


def ask(logs: Path, online: Online, q: object = "Good night", **more: object) -> tuple[int, Any]:
    with serving(logs, online) as client:
        reply = client.post("/translate", json={"q": q, "target": "fr"} | more, headers=trial(logs))
        return reply.status_code, reply.get_json()


def all_let_go(online: Online) -> None:
    """Waits until no request to the far end is under way."""
    for _ in range(AT_ONCE_MAX):
        assert online._free.acquire(timeout=20), "what was given up on is never let go"
    online._free.release(AT_ONCE_MAX)


def test_what_was_asked_goes_to_the_server_that_was_named_and_its_answer_comes_back(
    far_end: FarEnd, places: list[str], tmp_path: Path
) -> None:
    assert ask(tmp_path, Online(far_end.url, KEY), source="en") == (200, {"translatedText": "Bonne nuit"})
    assert far_end.asked == [
        {"path": "/translate", "q": "Good night", "source": "en", "target": "fr", "format": "text", "api_key": KEY}
    ]
    assert set(places) == {"127.0.0.1"}


def test_without_a_key_none_is_sent_and_a_path_in_the_address_is_kept(far_end: FarEnd, tmp_path: Path) -> None:
    assert ask(tmp_path, Online(f"{far_end.url}/libre"), "Moin", target="en")[0] == 200
    assert far_end.asked == [
        {"path": "/libre/translate", "q": "Moin", "source": "auto", "target": "en", "format": "text"}
    ]


def test_a_list_comes_back_as_a_list(far_end: FarEnd, tmp_path: Path) -> None:
    assert ask(tmp_path, Online(far_end.url), ["one", "two"]) == (200, {"translatedText": ["un", "deux"]})


@pytest.mark.parametrize(
    ("script", "status", "words"),
    [
        ((400, b'{"error": "xx is not supported"}'), 400, "Invalid request: the translation server refuses it"),
        ((401, b"{}"), 401, "Invalid API key"),
        ((403, b'{"error": "Invalid API key"}'), 403, "Invalid API key"),
        ((413, b"{}"), 413, "Invalid request: the text is too long for the translation server"),
        ((429, b'{"error": "Slowdown"}'), 429, "Slowdown: the translation server asks for fewer requests"),
        ((500, b'{"error": "Cannot translate text"}'), 500,
         "Cannot translate text: the translation server failed (500)"),
        ((404, b"nothing here"), 500, "Cannot translate text: the translation server failed (404)"),
        ((502, b"<html>bad gateway</html>"), 500, "Cannot translate text: the translation server failed (500)"),
        ((503, b""), 503, "Service unavailable: the translation server says so"),
        ((200, b"<html>welcome</html>"), 500, "Cannot translate text: the translation server's answer makes no sense"),
        ((200, b""), 500, "Cannot translate text: the translation server's answer makes no sense"),
        ((200, b"{}"), 500, "Cannot translate text: the translation server's answer makes no sense"),
        ((200, b"[1, 2]"), 500, "Cannot translate text: the translation server's answer makes no sense"),
        ((200, b'{"text": "Bonne nuit"}'), 500,
         "Cannot translate text: the translation server's answer makes no sense"),
        ((200, b'{"translatedText": 4}'), 500, "Cannot translate text: the translation server's answer makes no sense"),
        ((200, b"\xff\xfe\x00"), 500, "Cannot translate text: the translation server's answer makes no sense"),
    ],
)  # fmt: skip
def test_each_failure_of_the_far_end_is_said_in_the_translators_own_words(
    script: tuple[int, bytes], status: int, words: str, far_end: FarEnd, tmp_path: Path
) -> None:
    far_end.script = Reply(script[0], {}, script[1])
    assert ask(tmp_path, Online(far_end.url, KEY)) == (status, {"error": words})
    assert len(far_end.asked) == 1
    logged = "".join(path.read_text() for path in tmp_path.rglob("*.log"))
    assert logged == "", "a failure of the far end is no crash of ours"


def test_nobody_there_is_a_service_that_is_unavailable(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as once:
        port = once.getsockname()[1]
    words = {"error": "Service unavailable: no answer from the translation server at TRANSLATOR_URL"}
    assert ask(tmp_path, Online(f"http://127.0.0.1:{port}", KEY)) == (503, words)
    assert KEY not in "".join(capfd.readouterr())


def test_a_server_that_never_answers_is_not_waited_for_beyond_the_deadline(far_end: FarEnd, tmp_path: Path) -> None:
    far_end.hold = threading.Event()
    late = {"error": "Service unavailable: the translation server did not answer within 0.2 s"}
    online = Online(far_end.url, KEY, deadline_s=0.2)
    assert ask(tmp_path, online, ["one", "two"]) == (503, late)
    far_end.hold.set()
    all_let_go(online)
    assert "two" not in [asked["q"] for asked in far_end.asked], "nobody waits for the rest"


def test_only_so_many_are_waited_for_at_once_and_all_can_be_had_again(far_end: FarEnd) -> None:
    far_end.hold = threading.Event()
    online = Online(far_end.url, deadline_s=0.05)
    for _ in range(AT_ONCE_MAX):
        with pytest.raises(Refusal, match=r"did not answer within 0\.05 s"):
            online.translate(["one"], "en", "fr")
    with pytest.raises(Refusal, match="8 translations are being waited for already"):
        online.translate(["one"], "en", "fr")
    far_end.hold.set()
    far_end.hold = None
    all_let_go(online)
    assert Online(far_end.url, _free=online._free).translate(["one"], "en", "fr") == ["un"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"target": "fr"}, "Invalid request: missing q parameter"),
        ({"q": "one"}, "Invalid request: missing target parameter"),
        ({"q": "one", "target": 4}, "Invalid request: target must be a string"),
        ({"q": "one", "target": "klingon"}, "klingon is not supported"),
    ],
)
def test_what_cannot_be_asked_is_refused_and_never_sent(
    body: dict[str, object], words: str, far_end: FarEnd, tmp_path: Path
) -> None:
    with serving(tmp_path, Online(far_end.url, KEY)) as client:
        reply = client.post("/translate", json=body, headers=trial(tmp_path))
    assert (reply.status_code, reply.get_json()) == (400, {"error": words})
    assert far_end.asked == []


# --- how it is chosen ---


def test_there_is_no_server_by_default(places: list[str]) -> None:
    with pytest.raises(
        SettingError, match=r"TRANSLATOR=online needs TRANSLATOR_URL.*no public one is asked by default"
    ):
        translator.chosen(Settings(translator="online", translator_key=KEY))
    assert places == []


def test_an_address_alone_leaves_the_phrasebook_in_place() -> None:
    assert translator.chosen(Settings(translator_url="http://127.0.0.1:5050")) == translator.routes()


def test_without_the_library_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "deep_translator", None)
    monkeypatch.setenv("TRANSLATOR", "online")
    monkeypatch.setenv("TRANSLATOR_URL", "http://127.0.0.1:5050")
    monkeypatch.chdir(tmp_path)
    assert main(["tools", "translator"]) == 2
    assert capsys.readouterr().err == f"TRANSLATOR=online needs deep-translator: {install_line('online')}\n"


def test_the_key_is_not_part_of_what_an_object_says_of_itself() -> None:
    assert KEY not in repr(Online("http://127.0.0.1:5050", KEY))


def test_a_whole_run_translates_there_and_its_key_is_in_no_file(far_end: FarEnd, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(f"TRANSLATOR=online\nTRANSLATOR_URL={far_end.url}\nTRANSLATOR_KEY={KEY}\n")
    asked = prompts(tmp_path, ["Translate 'Good night' to French."])
    ended = chaoslab(tmp_path, "lab", f"BASE_PORT={free_base()}", asked, "TOXIC_PROB=0", "ERROR_PROB=0")
    assert ended.returncode == 0, ended.stderr
    history = History.read(tmp_path / "logs" / "latest")
    finished, started = history.first(PromptFinished), history.first(RunStarted)
    assert finished is not None
    assert "Bonne nuit" in finished.answer
    assert far_end.asked
    assert {asked["api_key"] for asked in far_end.asked} == {KEY}
    assert started is not None
    assert started.settings["TRANSLATOR_KEY"] == "***"
    holders = [path.name for path in tmp_path.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    assert holders == [".env"]
    assert KEY not in ended.stdout + ended.stderr


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc to look into a process's environment")
def test_the_key_is_given_to_the_process_of_the_tools_alone(far_end: FarEnd, tmp_path: Path) -> None:
    run = Run.create(tmp_path / "logs", now=NOW)
    ports = Ports(free_base())
    chosen = Settings(translator="online", translator_url=far_end.url, translator_key=KEY, base_port=ports.base)
    variables = {**environment(), **chosen.environment()}
    with Local(ports, tmp_path / "logs", tmp_path / "state.db", run.folder, variables, system) as world:
        world.start(now=NOW, toxiproxy=True, model=True)
        held = [p.name for p in world.parts if KEY.encode() in Path(f"/proc/{p.process.pid}/environ").read_bytes()]
    assert held == ["tools"]
