"""Acts of sabotage by hand on the lab in containers, with what is expected of each and what was seen.

    python -m tests.live.sabotage FOLDER [ACT …]

FOLDER is a clone of the lab in which `docker compose build` was run; ports and project are those of its environment. It
prints a table in Markdown and exits with the number of acts that went otherwise.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from chaoslab.base.clock import system
from chaoslab.record.runs import list_runs_newest_first
from tests.disk_parts import small_disk
from tests.live.compose_parts import PARTS, WITHIN_S, until

TRIALS = 24
TOXIPROXY = f"http://127.0.0.1:{os.environ.get('TOXIPROXY_PORT', '8474')}"


def compose(*words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["docker", "compose", "--ansi", "never", *words],
        env={**os.environ, **settings}, capture_output=True, text=True, check=False, timeout=WITHIN_S,
    )  # fmt: skip


def api(method: str, path: str, body: str = "") -> str:
    """Asks Toxiproxy, as toxiproxy-cli does."""
    request = urllib.request.Request(TOXIPROXY + path, body.encode() or None, method=method)
    with urllib.request.urlopen(request) as reply:
        return str(reply.read().decode())


def all_proxies_deleted() -> None:
    import json

    for name in json.loads(api("GET", "/proxies")):
        api("DELETE", f"/proxies/{name}")


def foreign_toxic() -> None:
    api("POST", "/proxies/weather/toxics", '{"type": "latency", "name": "mine", "attributes": {"latency": 1500}}')


def back(*words: str, after_s: float) -> None:
    """Does something to a part, and undoes it by the second command after some seconds."""
    first, second = words
    compose(first, "weather")
    system.sleep(after_s)
    compose(second, "weather")


def disk_full() -> None:
    with contextlib.suppress(OSError), (Path("logs") / "filler").open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass


def folder() -> Path:
    return list_runs_newest_first(Path("logs"))[0]


@dataclass(frozen=True)
class Act:
    """An act in mid-run. `codes`: the exit codes of an agent that is right; `says`: a text that the agent, the summary
    or the manager then says."""

    name: str
    do: Callable[[], object]
    codes: tuple[int, ...]
    says: str


DISK_FULL = Act("the disk of the logs is full", disk_full, (3,), "No space left on device")
LIVE = (
    Act("a service is killed", lambda: compose("kill", "weather"), (4,), "not green: "),
    Act("a service stands still for 5 s", lambda: back("pause", "unpause", after_s=5), (4,), "not green: "),
    Act("a service is restarted", lambda: compose("restart", "weather"), (0, 4), "ended well"),
    Act("Toxiproxy is restarted", lambda: compose("restart", "toxiproxy"), (0, 4), "ended well"),
    Act("Toxiproxy is killed", lambda: compose("kill", "toxiproxy"), (3,), "the lab is down"),
    Act("all proxies are deleted", all_proxies_deleted, (0, 4), "ended well"),
    Act("a toxic of somebody else's on a clean proxy", foreign_toxic, (4,), "not from this lab: latency on weather"),
    Act("the manager is killed", lambda: compose("kill", "proxy_manager"), (3,), "the lab is down"),
    Act("the manager is restarted", lambda: compose("restart", "proxy_manager"), (3,), "the lab is down"),
    Act("the database is deleted", lambda: Path("state/state.db").unlink(), (3,), "state.db"),
    Act("the database is overwritten", lambda: Path("state/state.db").write_bytes(b"x" * 9000), (3,), "state.db"),
    Act("the run's folder is deleted", lambda: shutil.rmtree(folder()), (3,), "the lab is down"),
    Act("the agent is stopped", lambda: compose("stop", "agent"), (130, 143), "interrupted"),
    Act("the agent is killed", lambda: compose("kill", "agent"), (137,), "not finished"),
)
"""The acts on a run that goes on."""
REFUSED = {
    "a typo in .env": (".env", "TOXC_PROB=0.9", "did you mean TOXIC_PROB?"),
    "a value that cannot be, in .env": (".env", "TOXIC_PROB=7", "a chance from 0 to 1"),
    "a file of prompts that is none": ("data/mine.json", "[{", "mine.json"),
}
"""By name, a file, its text, and what the refusal says."""


def mid_run(act: Act) -> tuple[str, bool]:
    """Starts a run, does the act once trials have ended, and tells what was seen."""
    compose("rm", "--stop", "--force", "agent")
    begun = compose("up", "--detach", "--wait", "--no-build", *PARTS)
    if begun.returncode:
        return f"not begun: {begun.stderr.strip().splitlines()[-1]}", False
    compose("up", "--detach", "--no-build", "agent", TRIALS=str(TRIALS), TOXIC_PROB="0.1")
    until(lambda: compose("logs", "agent").stdout.count(f"/{TRIALS} ") >= 3, "three trials end")
    act.do()
    compose("wait", "agent")
    code = int(compose("ps", "--all", "--format", "{{.ExitCode}}", "agent").stdout.strip() or -1)
    said = compose("logs", "agent", "proxy_manager").stdout
    for command in (["summary", "latest"], ["runs"]):
        ended = subprocess.run(
            [sys.executable, "-m", "chaoslab", *command], capture_output=True, text=True, check=False
        )
        said += ended.stdout + ended.stderr
    line = next((line for line in said.splitlines() if act.says in line), "")
    return f"exit code {code}; {line.partition('| ')[2] or line or '(not said)'}".strip(), code in act.codes and bool(
        line
    )


def on_a_small_disk(act: Act) -> tuple[str, bool]:
    """The same with a disk of 4 MB in place of ./logs, which needs root."""
    compose("down", "--timeout", "5")
    with small_disk(Path("logs"), kib=4000, keep=False):
        try:
            return mid_run(act)
        finally:
            compose("down", "--timeout", "5")


def refused(file: str, text: str, says: str) -> tuple[str, bool]:
    """A start with a wrong file, which must end before a container is up."""
    path = Path(file)
    path.write_text(f"{text}\n")
    try:
        given = ["PROMPTS=data/mine.json"] if file != ".env" else []
        ended = subprocess.run(
            [sys.executable, "-m", "chaoslab", "lab", "WORLD=compose", *given],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    finally:
        path.unlink()
    line = (ended.stderr.strip().splitlines() or [""])[-1]
    return f"exit code {ended.returncode}; {line}", ended.returncode == 2 and says in line


def latest_deleted() -> tuple[str, bool]:
    shutil.rmtree(folder())
    ended = subprocess.run(
        [sys.executable, "-m", "chaoslab", "summary", "latest"], capture_output=True, text=True, check=False
    )
    line = (ended.stderr.strip().splitlines() or ["(not said)"])[0]
    return f"exit code {ended.returncode}; {line}", "latest" in line


def main(place: str, *wanted: str) -> int:
    os.chdir(place)
    acts: dict[str, tuple[str, Callable[[], tuple[str, bool]]]] = {
        name: (f"exit code 2: “{words[2]}”", partial(refused, *words)) for name, words in REFUSED.items()
    }
    for act in LIVE:
        codes = " or ".join(map(str, act.codes))
        acts[act.name] = (f"exit code {codes}: “{act.says}”", partial(mid_run, act))
    acts[DISK_FULL.name] = (f"exit code 3: “{DISK_FULL.says}”", partial(on_a_small_disk, DISK_FULL))
    acts["the latest run is deleted"] = ("a line that says so", latest_deleted)
    print("| act | expected | seen | |\n|---|---|---|---|", flush=True)
    failed = 0
    for name, (expected, do) in acts.items():
        if not wanted or name in wanted:
            seen, held = do()
            failed += not held
            print(f"| {name} | {expected} | {seen[:160]} | {'as expected' if held else 'OTHERWISE'} |", flush=True)
    compose("down", "--timeout", "5")
    return failed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
