"""The settings in force say where each was given, and an option that is really a setting is told so."""

from dataclasses import fields
from pathlib import Path

import pytest

from chaoslab.cli import main
from chaoslab.cli.lab import NAMED
from chaoslab.config.effective import guess_meant_settings, render_effective_settings
from chaoslab.config.settings import SettingError, Settings
from tests.cli_parts import Typed

SECRET = "gsk_Sup3rSecret"
NAMES = [field.name.upper() for field in fields(Settings)]


def rows(text: str) -> dict[str, tuple[str, str]]:
    """Setting → (from, value)."""
    lines = [line.split("  ") for line in text.splitlines()]
    cells = ([cell.strip() for cell in line if cell.strip()] for line in lines)
    return {name: (where, value) for name, where, value in cells}


def test_each_setting_has_its_value_and_where_it_was_given(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("# mine\nSEED=7\nLATENCY_MS=20\nTOXIC_PROB=0.5\nJOBS=\n")
    environment = {"LATENCY_MS": "30", "TOXIC_PROB": "0.6", "PATH": "/bin"}
    found = rows(render_effective_settings(["TOXIC_PROB=0.7"], environment=environment, env_file=file))
    assert list(found) == ["setting", *NAMES]
    assert found["SEED"] == (f"{file}, line 2", "7")
    assert found["LATENCY_MS"] == ("environment", "30")
    assert found["TOXIC_PROB"] == ("command line", "0.7")
    assert found["TOXICS"] == ("default", "timeout:1,latency:1")
    assert found["JOBS"] == ("default", "(empty)")
    assert found["MODEL"] == ("default", "chaoslab-offline")
    assert found["COST_LIMIT_USD"] == ("default", "(empty)")


def test_of_a_secret_only_whether_it_is_set_is_shown(tmp_path: Path) -> None:
    environment = {"GROQ_API_KEY": SECRET, "MODEL_URL": f"http://me:{SECRET}@localhost:9/v?key={SECRET}"}
    text = render_effective_settings(environment=environment, env_file=tmp_path / "none")
    assert SECRET not in text
    found = rows(text)
    assert found["GROQ_API_KEY"] == ("environment", "set")
    assert found["MODEL_URL"] == ("environment", "http://***@localhost:9/v?***")
    assert found["COST_LIMIT_USD"] == ("default with a key", "0.5")


def test_a_setting_that_cannot_be_is_refused_as_for_a_run(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"SEED=x \(command line\) should be a whole number"):
        render_effective_settings(["SEED=x"], environment={}, env_file=tmp_path / "none")


@pytest.mark.usefixtures("here")
def test_the_command_prints_it(typed: Typed) -> None:
    Path(".env").write_text("SEED=7\n")
    found = rows(typed.out("settings", "--effective", "JOBS=3"))
    assert found["SEED"] == (".env, line 1", "7")
    assert found["JOBS"] == ("command line", "3")
    assert typed.refused("settings", "--effective", "JOBS=many").startswith("JOBS=many (command line) should be ")
    assert typed.refused("settings", "JOBS=3").startswith("chaoslab settings: JOBS has no effect without --effective")


@pytest.mark.parametrize("name", [name for name in NAMES if name.lower() not in NAMED])
def test_each_settings_name_as_an_option_says_how_it_is_given(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    option = f"--{name.lower().replace('_', '-')}"
    with pytest.raises(SystemExit, match="2"):
        main(["lab", option, "3"])
    value = "…" if name == "GROQ_API_KEY" else "3"
    line = f"chaoslab lab: {option} is given as the setting {name}={value}; see chaoslab lab --help\n"
    assert capsys.readouterr().err == line


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (["lab", "--jitter-ms=3", "--toxic_prob", "0.4"],
         "--jitter-ms --toxic_prob are given as the settings JITTER_MS=3 TOXIC_PROB=0.4"),
        (["lab", "--toxic-prb", "0.4"], "--toxic-prb is given as the setting TOXIC_PROB=0.4"),
        (["lab", "--base-port"], "--base-port is given as the setting BASE_PORT=…"),
        (["lab", "--repeats", "--fallback"], "--repeats --fallback are given as the settings REPEATS=… FALLBACK=…"),
        (["run", "--tool-limit", "3", "--seed", "4"], "--tool-limit is given as the setting TOOL_LIMIT=3"),
        (["lab", "--frob", "--repeats", "3"], "unrecognized arguments: --frob --repeats"),
        (["show", "--seed", "3"], "unrecognized arguments: --seed"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else "",
)  # fmt: skip
def test_options_that_are_settings_are_told_apart_from_nonsense(given: list[str], line: str, typed: Typed) -> None:
    assert typed.refused(*given).startswith(f"chaoslab {given[0]}: {line}")


def test_a_secret_that_was_typed_is_not_repeated() -> None:
    assert guess_meant_settings(["lab", f"--groq-api-key={SECRET}"], [f"--groq-api-key={SECRET}"]) == "GROQ_API_KEY=…"
