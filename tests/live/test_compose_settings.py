"""Settings of `.env`, the shell and `run -e` arrive in each part, and parts of different versions make no run."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from chaoslab.config.settings import DEFAULT_NOW, OF_SERVICES, Settings
from chaoslab.config.topology import SERVICES
from chaoslab.core.events import RunStarted
from tests.live.compose_parts import PARTS as STANDING
from tests.live.compose_parts import WITHIN_S, Stack

SET = {
    "MODEL": "mine", "MODEL_URL": "http://127.0.0.1:9", "STREAM": "on", "MODEL_TOKEN_MS": "3", "SEED": "9",
    "REPEATS": "2", "TRIALS": "4", "JOBS": "2", "DEADLINE_S": "99", "PROMPTS": "data/mine.json",
    "NOW": "2026-07-02T10:00:00Z", "TOXIC_PROB": "0.3", "TOXICS": "latency:1", "TOXIC_TARGETS": "weather",
    "TOXIC_TRIGGERS": '{"max_times": 2}', "LATENCY_MS": "70", "JITTER_MS": "7", "TIMEOUT_MS": "40",
    "MODEL_TOXIC_PROB": "0.2", "NETWORK": "good", "ERROR_PROB": "0.4", "ERRORS": "lost_reply:1",
    "ERROR_TARGETS": "search", "ERROR_TRIGGERS": '{"max_times": 3}', "HALLUCINATION_PROB": "0.1",
    "CONTEXT_PROB": "0.05",
    "STREAM_PROB": "0.15", "STREAM_FAULTS": "cut:1", "FAULTS": "stale:0.2", "CHAOS_LEVEL": "1",
    "CHAOS_FAMILIES": "network", "TOKEN_LIMIT": "9000", "COST_LIMIT_USD": "2", "CALL_LIMIT": "50",
    "TIME_LIMIT_S": "60",
    "BUDGET": "soft", "AGENT": "careful", "TOOL_LIMIT": "2", "PROMPT_LIMIT": "2", "FALLBACK": "none",
    "TOOL_TIMEOUT_S": "3", "MODEL_TIMEOUT_S": "20",
    "SECRET_NAMES": "token", "SAYS_UNDONE": "it isn't|not able to",
}  # fmt: skip
PLACES = {"TOXIPROXY_URL", "TOXIPROXY_METRICS", "BASE_PORT", "WORLD"}
ORIGINS = (".env", "shell", "run -e")
SHOW = "/lab/as-owner python -m chaoslab settings --effective --json"


@pytest.fixture
def settled(built: Stack) -> Iterator[Stack]:
    yield built
    (built.folder / ".env").unlink(missing_ok=True)


PARTS = ("weather", "model", "proxy_manager", "translator", "agent", "charts", "sweep", "ui")


@pytest.mark.parametrize("part", PARTS)
def test_each_part_has_what_was_set_wherever_that_was(settled: Stack, part: str) -> None:
    """A third of the settings each way. The last one wins over the others, and the shell over `.env`."""
    secret = {"GROQ_API_KEY"}
    assert set(SET) == set(Settings().to_environment()) - PLACES - secret
    given: dict[str, dict[str, str]] = {origin: {} for origin in ORIGINS}
    for number, (name, value) in enumerate(SET.items()):
        given[ORIGINS[number % 3]][name] = value
    given[".env"] |= {"NOW": DEFAULT_NOW, "SECRET_NAMES": "theirs", **dict.fromkeys(secret, "gsk_secret")}
    given["shell"] |= {"NOW": SET["NOW"], "SECRET_NAMES": "nobody's"}
    given["run -e"] |= {"SECRET_NAMES": SET["SECRET_NAMES"]}
    given["run -e"].pop("NOW", None)
    (settled.folder / ".env").write_text("".join(f"{name}={value}\n" for name, value in given[".env"].items()))
    options = [word for name, value in given["run -e"].items() for word in ("-e", f"{name}={value}")]
    ran = settled.compose(
        "run", "--rm", "-T", "--no-deps", *options, "--entrypoint", SHOW, part, **given["shell"]
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout, ran.stderr
    shown = {one["name"]: one["value"] for one in json.loads(ran.stdout)["settings"]}
    wanted = SET if part in ("agent", "charts", "sweep", "ui") else {name: SET[name] for name in OF_SERVICES}
    assert {name: shown[name] for name in wanted} == wanted
    keys = secret if part == "agent" else set()
    assert {name for name in secret if shown[name] == "set"} == keys


def test_a_run_and_a_sweep_in_containers_are_of_the_settings_that_were_checked(settled: Stack) -> None:
    (settled.folder / ".env").write_text("ERROR_PROB=0.35\nTRIALS=3\n")
    given = {"TOXIC_PROB": "0.45", "TOXICS": "latency:1"}

    def runs_of(*words: str) -> list[dict[str, object]]:
        before = settled.runs()
        ran = settled.compose("run", "--rm", "-T", "-e", "SEED=6", *words, **given)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        made = sorted(set(settled.runs()) - set(before))
        began = [settled.history(run).find_first_event(RunStarted) for run in made]
        return [each.settings for each in began if each is not None]

    expected = {"ERROR_PROB": 0.35, "TRIALS": 3, "TOXIC_PROB": 0.45, "SEED": 6, "WORLD": "virtual"}
    for found, levels in (
        (runs_of("charts", "chaoslab", "run", "--quiet"), ["default"]),
        (runs_of("sweep", "AGENT=naive,careful", "--quiet"), ["naive", "careful"]),
    ):
        assert [one["AGENT"] for one in found] == levels
        assert [{name: one[name] for name in expected} for one in found] == [expected] * len(levels)


def test_an_edit_between_two_starts_is_refused_with_the_parts_that_have_the_old_sources(stack: Stack) -> None:
    source = stack.folder / "flask_tools" / "arithmetic.py"
    text = source.read_text()
    asked = {"PROMPTS": stack.prompts(["What is 6 times 7?"]), "TOXIC_PROB": "0", "ERROR_PROB": "0"}

    def ended() -> tuple[int, str]:
        stack.without_agent()
        assert stack.compose("up", "--detach", "agent", **asked).returncode == 0
        agent = stack.container("agent")
        return int(agent.wait(timeout=WITHIN_S)["StatusCode"]), agent.logs().decode()

    try:
        source.write_text(f"{text}\nCHANGED = True\n")
        code, said = ended()
        assert code == 2, said
        assert said.startswith("the parts of this lab differ")
        assert all(f"{name} has other sources" in said for name in SERVICES)
        assert stack.compose("up", "--detach", "--force-recreate", "--wait", *STANDING).returncode == 0
        code, said = ended()
        assert code == 0, said
    finally:
        source.write_text(text)
        stack.compose("up", "--detach", "--force-recreate", "--wait", *STANDING)


def test_a_service_with_other_settings_than_the_run_is_refused(stack: Stack) -> None:
    given = {"PROMPTS": stack.prompts(["What is 6 times 7?"]), "SECRET_NAMES": "mine"}
    ran = stack.compose("run", "--rm", "-T", "--no-deps", "agent", **given)
    assert ran.returncode == 2, ran.stdout + ran.stderr
    assert "weather has other settings" in ran.stderr + ran.stdout
    assert "proxy manager has other settings" in ran.stderr + ran.stdout


def test_two_runs_with_other_chances_in_one_stack_report_themselves_each(stack: Stack) -> None:
    """The second one leaves the parts as they are: else it would end the first."""
    before = {part: stack.container(part).id for part in STANDING}
    runs = stack.runs()
    long = {"PROMPTS": stack.prompts(["What is 6 times 7?"] * 60, "long.json"), "TOXIC_PROB": "0", "ERROR_PROB": "0"}
    assert stack.compose("up", "--detach", "agent", **long).returncode == 0
    first = stack.logged("prompt_finished", after=runs, at_least=1)
    given = {"PROMPTS": stack.prompts(["What is 6 times 7?"]), "TOXIC_PROB": "1", "TOXICS": "latency:1", "SEED": "4"}
    other = stack.compose("run", "--rm", "-T", "agent", **given)
    assert other.returncode == 0, other.stdout + other.stderr
    (second,) = set(stack.runs()) - {*runs, first}
    agent = stack.container("agent")
    assert agent.wait(timeout=WITHIN_S)["StatusCode"] == 0
    assert {part: stack.container(part).id for part in STANDING} == before
    for own, others, said in ((first, second, agent.logs().decode()), (second, first, other.stdout)):
        assert f"logs    logs/{own}/" in said, said
        assert others not in said
        assert (stack.folder / "logs" / own / "report.html").exists()
