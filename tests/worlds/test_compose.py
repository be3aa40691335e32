"""The world of containers is refused in a line where there can be none.

`docker` itself is a fake here, and tried in tests/live.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import permutations
from pathlib import Path
from typing import ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest

from chaoslab.base.clock import system
from chaoslab.cli import main
from chaoslab.core.events import PromptFinished, PromptStarted
from chaoslab.record.log import Log
from chaoslab.record.runs import Run
from chaoslab.wire.control import ControlDatabase
from chaoslab.worlds import compose
from chaoslab.worlds.compose import WorldError
from chaoslab.worlds.stopping import OutageRunner
from tests.event_parts import run_started
from tests.seams.lab_parts import eventually
from tests.waiting import HUNG_S

INFO, PLUGIN, UP, LOGS, WAIT, RUN_ONE = (
    "info",
    "compose version",
    "compose up",
    "compose logs",
    "compose wait",
    "compose run",
)
PINNED = ["image inspect"] * 4
BEFORE = {"make": [INFO, PLUGIN, *PINNED, RUN_ONE, "compose rm"], "run": [INFO, PLUGIN, "compose rm"]}
"""`make` looks for the pinned images, and has the settings checked in a container; the other door has checked them
itself."""
AFTER = ["compose ps", "compose stop", "compose ps"]
"""A part that has exited is looked up before anything is taken down."""
DOWN = "compose down"
ROOT = Path(__file__).parent.parent.parent
RUN = "import os, sys; from chaoslab.worlds import compose; sys.exit(compose.run_in_containers(os.environ))"
DOORS = {"make": ("make", "-f", str(ROOT / "Makefile"), "compose"), "run": (sys.executable, "-c", RUN)}


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to compose in, and a `docker` that writes down what it is asked and fails where a file says so. Its
    agent ended with what the file `ended` says, and its run is a copy of the folder `left`; what follows the agent goes
    on for as long as there is somebody at the pipe `follow`.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docker-compose.yaml").touch()
    program = tmp_path / "bin" / "docker"
    program.parent.mkdir()
    program.write_text(
        f"""#!/bin/sh
cd {tmp_path}
echo "$*" >> asked
trap 'echo "$* is interrupted" >> asked; exit 130' INT
case "$1 $2" in
  "info "*) exit $(cat info 2>/dev/null || echo 0) ;;
  "compose version") exit $(cat plugin 2>/dev/null || echo 0) ;;
  "compose up") [ -d left ] && cp -r left logs/$COMPOSE_RUN; exit $(cat up 2>/dev/null || echo 0) ;;
  "compose logs")
    case $3 in --follow) if [ -p follow ]; then cat follow; fi ;; *) echo "no room"; echo "ended" ;; esac ;;
  "compose ps") case $* in *agent) cat ended 2>/dev/null || true ;; *) cat exited 2>/dev/null || true ;; esac ;;
esac
"""
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


def asked(folder: Path) -> list[str]:
    """The first two words of each call, but the program's own."""
    lines = (folder / "asked").read_text().splitlines() if (folder / "asked").exists() else []
    return [line if "interrupted" in line else " ".join(line.split()[:2]) for line in lines]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("code", [0, 4, 130, 137])
def test_an_agent_that_was_stopped_or_killed_has_its_report_shown_and_all_is_taken_down(
    docker: Path, code: int, door: str
) -> None:
    (docker / "ended").write_text(str(code))
    ended = subprocess.run(DOORS[door], cwd=docker, capture_output=True, text=True, check=False)
    assert ended.returncode == (code if door == "run" else 2 * (code != 0)), ended.stderr
    assert f"Error {code}" in ended.stderr or code == 0 or door == "run"
    assert asked(docker) == [*BEFORE[door], UP, LOGS, WAIT, *AFTER, *[RUN_ONE][: code in (130, 137)], DOWN]
    assert all((docker / name).is_dir() for name in ("logs", "state", "charts", "data"))


@pytest.mark.parametrize("door", DOORS)
def test_a_part_that_has_exited_is_told_of_with_its_last_lines_before_all_is_taken_down(
    docker: Path, door: str
) -> None:
    (docker / "ended").write_text("3")
    (docker / "exited").write_text("\nagent 3\nsettings 0\nweather 137\n")
    ended = subprocess.run(DOORS[door], cwd=docker, capture_output=True, text=True, check=False)
    said = ended.stdout + ended.stderr
    assert "weather has exited with code 137; its last lines:\n  no room\n  ended\n" in said
    assert said.count("has exited with code") == 1
    assert asked(docker) == [*BEFORE[door], UP, LOGS, WAIT, AFTER[0], LOGS, *AFTER[1:], DOWN]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("code", [1, 2, 17])
def test_a_run_that_never_began_is_taken_down_without_one(docker: Path, code: int, door: str) -> None:
    (docker / "ended").write_text(str(code))
    ended = subprocess.run(DOORS[door], cwd=docker, capture_output=True, text=True, check=False)
    assert ended.returncode == (code if door == "run" else 2), ended.stderr
    assert asked(docker) == [*BEFORE[door], UP, LOGS, WAIT, *AFTER, DOWN]


@pytest.mark.parametrize("door", DOORS)
def test_an_agent_that_was_never_started_has_no_code_of_its_own(docker: Path, door: str) -> None:
    (docker / "up").write_text("17")
    ended = subprocess.run(DOORS[door], cwd=docker, capture_output=True, text=True, check=False)
    assert ended.returncode == (17 if door == "run" else 2), ended.stderr
    assert "Error 17" in ended.stderr or door == "run"
    assert asked(docker) == [*BEFORE[door], UP, *AFTER, DOWN]


@pytest.mark.parametrize("door", DOORS)
def test_ctrl_c_ends_the_following_and_the_agent_is_then_stopped_and_reported(docker: Path, door: str) -> None:
    """Compose itself kills what it has started, should it take one Ctrl-C for two: so it must not be what hears it."""
    (docker / "ended").write_text("130")
    os.mkfifo(docker / "follow")
    begun = subprocess.Popen(
        DOORS[door], cwd=docker, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    with (docker / "follow").open("w"):  # open once somebody reads
        os.killpg(begun.pid, signal.SIGINT)
        words = begun.communicate(timeout=HUNG_S)[0]
    follow = "compose logs --follow agent is interrupted"
    assert asked(docker) == [*BEFORE[door], UP, LOGS, follow, *AFTER, RUN_ONE, DOWN], words
    lost = door == "make" and "wait: No child processes" in words  # make may miss its child's end beside the signal
    assert begun.returncode == (130 if door == "run" else 2 if lost else -signal.SIGINT), words
    assert "Traceback" not in words


def test_the_settings_in_force_reach_it(docker: Path) -> None:
    (docker / "bin" / "docker").write_text(f'#!/bin/sh\necho "$TRIALS $COMPOSE_CHARTS" >> {docker}/told\n')
    compose.run_in_containers({**os.environ, "TRIALS": "7"})
    compose.run_in_containers({**os.environ, "TRIALS": "8"}, drawn=False)
    assert set((docker / "told").read_text().splitlines()) == {"7 ", "8 ", "8 --no-charts"}  # "8 ": is there an engine?


class Engine(BaseHTTPRequestHandler):
    """An engine with a container of each service that it is asked for, as its API tells of them. It writes down what it
    is asked to do; `refuses` is its error for all of that."""

    done: ClassVar[list[str]] = []
    refuses: ClassVar[str] = ""
    busy: ClassVar[list[str]] = []
    host: ClassVar[dict[str, int]] = {"Memory": 0, "MemorySwap": 0, "CpuPeriod": 0, "CpuQuota": 0}
    state: ClassVar[list[str]] = ["running"]
    """The last one is the container's: it is dead once its memory was filled."""

    def do_GET(self) -> None:
        path = urlsplit(self.path)
        if path.path.endswith("/version"):
            self._say(200, {"ApiVersion": "1.41"})
        elif path.path.endswith("/containers/json"):
            (labels,) = (json.loads(text)["label"] for text in parse_qs(path.query)["filters"])
            (service,) = (label.rpartition("=")[2] for label in labels if ".service=" in label)
            self._say(200, [] if service == "nobody" else [{"Id": service}])
        elif "/exec/" in path.path:
            self._say(200, {"ExitCode": 0})
        elif path.path.endswith("/networks/lab_default"):
            self._say(200, {"Id": "lab_default", "Name": "lab_default"})
        elif path.path.endswith("/info"):
            self._say(200, {"MemTotal": 2**34})
        elif path.path.endswith("/stats"):
            self._say(200, {"memory_stats": {"usage": 2**25}})
        else:
            there = {"lab_default": {"Aliases": ["weather", "lab-weather-1"]}}
            now = {"HostConfig": self.host, "State": {"Status": self.state[-1]}}
            self._say(200, {"Id": path.path.split("/")[-2], "NetworkSettings": {"Networks": there}, **now})

    def do_POST(self) -> None:
        said = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "{}")
        what, of = self.path.split("?")[0].split("/")[-1], self.path.split("/")[-2]
        if "/exec" in self.path:
            self.state.extend(["exited"][: said.get("Cmd", [""])[0] == "dd"])
            self._say(201 if what == "exec" else 200, {"Id": "look"})
        elif self.refuses or self.busy:
            self._say(409, {"message": self.refuses or self.busy.pop()})
        else:
            told = {key: value for key, value in said.items() if value and key != "Container"}
            self.done.append(f"{what} {of} {told}" if told else f"{what} {of}")
            self.host.update(told if what == "update" else {})
            self._say(200 if what in ("update", "connect", "disconnect") else 204, {})

    def _say(self, status: int, body: object) -> None:
        data = b"" if status == 204 else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Engine]]:
    """An engine at DOCKER_HOST."""
    kind = type("ThisEngine", (Engine,), {"done": [], "state": ["running"], "busy": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{server.server_port}")
    yield kind
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_service_is_stopped_by_the_engine_while_the_agent_is_followed_and_none_stays_paused(
    docker: Path, engine: type[Engine]
) -> None:
    (docker / "ended").write_text("0")
    os.mkfifo(docker / "follow")
    state, fault = docker / "state.db", {
        "fault": "service_paused", "injection": "it", "trial": "p1.r1", "turn": 1, "request": 1, "attempt": 1,
        "request_id": "",
    }  # fmt: skip
    run = Run.create(docker / "logs", now="2026-06-01T09:00:00Z")

    def stopper(containers: compose.Containers) -> OutageRunner:
        return OutageRunner(containers, state=state, logs=docker / "logs", clock=system, manager="8000")

    def agent() -> None:
        with contextlib.closing(ControlDatabase(state, manager="8000")) as control, (docker / "follow").open("w"):
            control.request_run_setup(run.name, plan={}, targets={})
            killed = control.request_outage(run.name, "search", "killed", for_s=0.001, fault=fault)
            eventually(lambda: control.get_outage_state(killed)[0] == "over")
            paused = control.request_outage(run.name, "weather", "paused", for_s=3600, fault=fault)
            eventually(lambda: control.get_outage_state(paused)[0] == "stopped")

    thread = threading.Thread(target=agent)
    thread.start()
    assert compose.run_in_containers(os.environ, stopper=stopper) == 0
    thread.join()
    assert engine.done == ["kill search", "start search", "pause weather", "unpause weather"]
    assert asked(docker)[-len([*AFTER, DOWN]) :] == [*AFTER, DOWN]


def test_an_engine_that_stops_nothing_is_quoted(engine: type[Engine]) -> None:
    containers = compose.Containers(os.environ)
    engine.refuses = "the container is not running"
    with pytest.raises(OSError, match=r"^weather could not be paused: the container is not running$"):
        containers.pause("weather")
    with pytest.raises(LookupError, match=r"^there is no container of nobody$"):
        containers.kill("nobody")
    containers.close()


def test_a_container_that_a_busy_machine_does_not_freeze_at_once_is_asked_again(engine: type[Engine]) -> None:
    containers = compose.Containers(os.environ)
    engine.busy = ["unable to freeze"] * 2
    containers.pause("weather")
    assert (engine.done, engine.busy) == (["pause weather"], [])
    containers.close()


DEEDS = ("partitioned", "throttled", "out of memory")
LIMITS = {"Memory": 2**28, "MemorySwap": 2**29, "CpuPeriod": 50_000, "CpuQuota": 25_000}


@pytest.mark.parametrize("order", [*permutations(DEEDS)])
@pytest.mark.parametrize("host", [Engine.host, LIMITS], ids=["no limits", "limits"])
def test_what_only_an_engine_does_is_undone_in_any_order_to_what_there_was(
    engine: type[Engine], order: Sequence[str], host: dict[str, int]
) -> None:
    engine.host = dict(host)
    containers = compose.Containers(os.environ)
    for how in DEEDS * 2:  # two faults at once of each kind: the container keeps it until both have healed
        containers.disturb_service("weather", how, 0.05)
    began = list(engine.done)
    for how in order:
        containers.undo_disturbance("weather", how)
    assert engine.done == began
    for how in order:
        containers.undo_disturbance("weather", how)
    containers.close()
    throttled = "update weather {'CpuPeriod': 100000, 'CpuQuota': 5000}"
    full = min(2**25 + compose.SPARE, host["Memory"] or 2**60)
    assert began == [
        "disconnect lab_default {'Force': True}", throttled,
        f"update weather {{'Memory': {full}, 'MemorySwap': {full}}}", throttled,
    ]  # fmt: skip
    undone = {
        "partitioned": ["connect lab_default {'EndpointConfig': {'Aliases': ['weather', 'lab-weather-1', 'weather']}}"],
        "throttled": [
            f"update weather {{'CpuPeriod': {host['CpuPeriod'] or 100_000}, 'CpuQuota': {host['CpuQuota'] or -1}}}"
        ],
        "out of memory": [
            f"update weather {{'Memory': {host['Memory'] or 2**34}, 'MemorySwap': {host['MemorySwap'] or -1}}}",
            "start weather",
        ],
    }
    assert engine.done[len(began) :] == [line for how in order for line in undone[how]]


def test_without_an_engine_nothing_is_begun(docker: Path) -> None:
    (docker / "info").write_text("1")
    with pytest.raises(WorldError, match=r"^no Docker engine answers: start Docker, or use WORLD=local"):
        compose.run_in_containers(os.environ)
    assert asked(docker) == [INFO]
    assert not (docker / "logs").exists()


def test_without_the_plug_in_nothing_is_begun(docker: Path) -> None:
    (docker / "plugin").write_text("1")
    with pytest.raises(WorldError, match=r"^docker has no 'compose' plug-in"):
        compose.run_in_containers(os.environ)
    assert asked(docker) == [INFO, PLUGIN]


def test_without_docker_at_all(docker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(docker))
    with pytest.raises(WorldError, match=r"^no Docker engine answers"):
        compose.run_in_containers(os.environ)


def test_in_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WorldError, match=r"^there is no docker-compose\.yaml here"):
        compose.run_in_containers(os.environ)


@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        ("408", 0, "gate passed: at least 100 % correct were asked for, 100 % are (1 of 1 judged)\n"),
        (
            "409",
            1,
            "gate FAILED: 1 of 1 trial is open: missing fact '408'; nothing certain tells if the answer is right; at "
            "least 100 % correct were asked for, 0 % are (0 of 1 judged); not correct: p1.r1\n",
        ),
        (None, 1, "gate FAILED: the run has left no logs here\n"),
    ],
)
def test_a_gate_is_held_against_the_logs_that_the_containers_left(
    docker: Path, answer: str | None, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (docker / "ended").write_text("0")
    if answer is not None:
        with Log(docker / "left", "info", run="left", origin=0.0, clock=system) as log:
            log.write(run_started(plan={}, model="", world="compose", asked=["asked"]))
            log.write(
                PromptStarted(prompt_index=1, prompt="17 times 24?", facts=[["408"]], effects=[], stated=True),
                trial="p1.r1",
            )
            log.write(
                PromptFinished(
                    prompt_index=1, prompt="17 times 24?", status="ok", answer=answer, attempts=1, duration_s=1.0
                ),
                trial="p1.r1",
            )
    assert main(["run", "--world", "compose", "--min-correct", "1"]) == code
    assert "".join(capsys.readouterr()) == said
