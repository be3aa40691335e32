"""A setting means the same wherever it was said; a bad one says what is wrong, where, and what would be right."""

import json
import os
import re
from dataclasses import fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoslab import cli
from chaoslab.base import registry
from chaoslab.base.parsers import SECONDS_MAX
from chaoslab.config import settings
from chaoslab.config.settings import SettingError, Settings, load_settings

NETWORK = registry.list_family_plugins("faults", "network")

ROOT = Path(__file__).parent.parent
NOWHERE = Path("no-such-file.env")
SECRET = "gsk_Sup3rSecret"
NAMES = [field.name.upper() for field in fields(Settings)]


def env_file(folder: Path, text: str) -> Path:
    path = folder / ".env"
    path.write_text(text, encoding="utf-8")
    return path


def read(folder: Path, text: str) -> Settings:
    return load_settings(environment={}, env_file=env_file(folder, text))


def refusal(*arguments: str, file: Path = NOWHERE, **environment: str) -> str:
    """The line that says why settings are refused."""
    with pytest.raises(SettingError) as error:
        load_settings(arguments, environment=environment, env_file=file)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_the_example_is_the_code() -> None:
    assert (ROOT / ".env.example").read_text(encoding="utf-8") == settings.render_env_example()


def test_the_table_of_the_reference_has_a_line_for_each_setting_in_which_nothing_ends_a_cell() -> None:
    head, rule, *rows = settings.render_markdown_table().splitlines()
    assert (head, rule) == ("| setting | default | meaning |", "|---|---|---|")
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows]
    assert [(name, default) for name, default, _ in cells] == [
        (f.name.upper(), settings.format_value(f.default).replace("|", r"\|")) for f in fields(Settings)
    ]
    assert [meaning for *_, meaning in cells] == [f.metadata["doc"] for f in fields(Settings)]


def test_the_example_loads_as_the_defaults() -> None:
    assert load_settings(environment={}, env_file=ROOT / ".env.example") == Settings()


def test_the_example_says_what_every_setting_means() -> None:
    lines = settings.render_env_example().splitlines()
    for name in NAMES:
        (at,) = [n for n, line in enumerate(lines) if line.startswith(f"{name}=")]
        assert lines[at - 1].startswith("# ")


@pytest.mark.parametrize("present", range(8))
def test_command_line_over_environment_over_file_over_default(present: int, tmp_path: Path) -> None:
    said = {"argument": "4", "environment": "3", "file": "2"}
    here = {where: value for n, (where, value) in enumerate(said.items()) if present >> n & 1}
    file = env_file(tmp_path, f"SEED={here['file']}\n" if "file" in here else "")
    environment = {"SEED": here["environment"]} if "environment" in here else {}
    arguments = [f"SEED={here['argument']}"] if "argument" in here else []
    expected = next((int(here[where]) for where in said if where in here), Settings().seed)
    assert load_settings(arguments, environment=environment, env_file=file).seed == expected


def test_empty_means_unset_wherever_it_is_said(tmp_path: Path) -> None:
    file = env_file(tmp_path, "SEED=2\nTOXIC_PROB=\nTOKEN_LIMIT= \n")
    assert load_settings(["SEED="], environment={"SEED": " ", "REPEATS": ""}, env_file=file) == Settings(seed=2)


def test_no_file_is_needed() -> None:
    assert load_settings(environment={}, env_file=NOWHERE) == Settings()


def test_the_environment_may_hold_other_things_and_the_file_may_not(tmp_path: Path) -> None:
    assert load_settings(environment={"PATH": "/bin", "SEEDS": "x"}, env_file=NOWHERE) == Settings()
    with pytest.raises(SettingError, match=r"SEEDS is not a setting .*line 2.*did you mean SEED"):
        read(tmp_path, "# comment\nSEEDS=3\n")


def test_without_an_environment_given_the_process_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEED", "77")
    assert load_settings(env_file=NOWHERE).seed == 77
    assert settings.read_variable("SEED") == "77"
    assert settings.read_variable("NO_SUCH_VARIABLE_HERE") == ""


@pytest.mark.parametrize(
    ("line", "model"),
    [
        ("MODEL=plain", "plain"),
        ("  MODEL = spaced  ", "spaced"),
        ("export MODEL=exported", "exported"),
        ('MODEL="double quoted"', "double quoted"),
        ("MODEL='single # quoted'", "single # quoted"),
        ("MODEL=value # comment", "value"),
        ('MODEL="value" # comment', "value"),
        ("MODEL=a#b", "a#b"),
        ("MODEL=a=b", "a=b"),
        ("MODEL= # only a comment", ""),
        ("MODEL=''", ""),
        ("\ufeffMODEL=marked", "marked"),
        ("MODEL=first\r\nMODEL=last\r", "last"),
    ],
)
def test_the_file_is_read_as_people_write_such_files(line: str, model: str, tmp_path: Path) -> None:
    assert read(tmp_path, line + "\n").model == model


BAD = [
    ("MODEL=a\0b", "MODEL", "has a NUL character in it"),
    ("SEED=seven", "SEED=seven", "a whole number from 0"),
    ("SEED=1.5", "SEED=1.5", "a whole number"),
    ("NOW=yesterday", "NOW=yesterday", "a moment like 2026-06-01T09:00:00Z, or now"),
    ("NOW=2026-13-01", "NOW=2026-13-01", "a moment like"),
    ("NOW=0001-01-01T00:00:00+23:00", "NOW=0001", "a moment like"),
    ("NOW=9999-12-31T23:59:59", "NOW=9999", "a moment in the years 2 to 9998"),
    ("TOXIC_PROB=1.1", "TOXIC_PROB=1.1", "a chance from 0 to 1"),
    ("TOXIC_PROB=-0.1", "TOXIC_PROB=-0.1", "a chance from 0 to 1"),
    ("TOXIC_PROB=30%", "TOXIC_PROB=30%", "a chance from 0 to 1"),
    ("TOXICS=latency:-1", "TOXICS=latency:-1", f"names with weights like {NETWORK[0]}:1,{NETWORK[1]}:2"),
    ("TOXICS=latency:many", "TOXICS=latency:many", "names with weights"),
    ("TOXICS=latency:0", "TOXICS=latency:0", "at least one weight above 0"),
    ("TOXICS=latency,,timeout", "TOXICS=latency,,timeout", "names with weights"),
    ("TOXICS=tool_error:1", "TOXICS=tool_error:1", f"out of {', '.join(NETWORK)}"),
    ("TOXIC_TARGETS=,", "TOXIC_TARGETS=,", "all, or names with commas"),
    ("LATENCY_MS=-5", "LATENCY_MS=-5", "a number from 0 to 315360000000"),
    ("JITTER_MS=inf", "JITTER_MS=inf", "a number from 0 to 315360000000"),
    ("TIMEOUT_MS=2s", "TIMEOUT_MS=2s", "a number from 0 to 315360000000"),
    ("ERRORS=lost_replies", "ERRORS=lost_replies", "did you mean lost_reply?"),
    ("ERRORS=503:1", "ERRORS=503:1", "out of " + ", ".join(registry.list_family_plugins("faults", "tool"))),
    ("TOXICS=503:1", "TOXICS=503:1", f"like {NETWORK[0]}:1,{NETWORK[1]}:2 out of {', '.join(NETWORK)}"),
    ("WORLD=mars", "WORLD=mars", "local or compose or virtual"),
    ("TOKEN_LIMIT=0", "TOKEN_LIMIT=0", "a number above 0"),
    ("COST_LIMIT_USD=-1", "COST_LIMIT_USD=-1", "a number above 0"),
    ("CALL_LIMIT=lots", "CALL_LIMIT=lots", "a number above 0"),
    ("TIME_LIMIT_S=infinity", "TIME_LIMIT_S=infinity", "a number above 0"),
    ("BUDGET=firm", "BUDGET=firm", "hard or soft"),
    ("FALLBACK=proxy", "FALLBACK=proxy", "direct or none"),
    ("TOOL_TIMEOUT_S=0", "TOOL_TIMEOUT_S=0", "a number above 0"),
    ("MODEL_TIMEOUT_S=abc", "MODEL_TIMEOUT_S=abc", "a number above 0"),
    ("TOXIPROXY_URL=localhost:8474", "TOXIPROXY_URL=localhost:8474", "an address like http://127.0.0.1:8474"),
    ("TOXIPROXY_URL=ftp://127.0.0.1", "TOXIPROXY_URL=ftp://127.0.0.1", "an address like"),
    ("TOXIPROXY_URL=http://127.0.0.1:port", "TOXIPROXY_URL=http://127.0.0.1:port", "an address like"),
    ("TOXIPROXY_URL=http://127.0.0.1:99999", "TOXIPROXY_URL=http://127.0.0.1:99999", "an address like"),
    ("TOXIPROXY_URL=http://[::1", "TOXIPROXY_URL=http://[::1", "an address like"),
    ("MODEL_URL=https://", "MODEL_URL=https:", "an address like"),
    ("TOXIC_PORB=0.3", "TOXIC_PORB is not a setting", "did you mean TOXIC_PROB?"),
    ("toxic_prob=0.3", "toxic_prob is not a setting", "did you mean TOXIC_PROB?"),
    ("TOXIC-PROB=0.3", "TOXIC-PROB is not a setting", "did you mean TOXIC_PROB?"),
    ("SEED", "'SEED' (", "is not understood"),
    ("SEED: 3", "'SEED…' (", "is not understood"),
    ("=3", " is not a setting", " is not a setting"),
]


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("SEED", 0, 2**63 - 1),
        ("REPEATS", 1, 1000),
        ("TRIALS", 1, 1_000_000),
        ("JOBS", 1, 256),
        ("TOOL_LIMIT", 0, 20),
        ("PROMPT_LIMIT", 0, 20),
        ("BASE_PORT", 1024, 60000),
    ],
)
def test_a_whole_number_may_be_either_of_its_bounds_and_nothing_beyond(name: str, low: int, high: int) -> None:
    for number in (low, high):
        assert getattr(Settings().override({name: str(number)}), name.lower()) == number
    for number in (low - 1, high + 1):
        with pytest.raises(SettingError, match=f"{name}={number} should be a whole number from {low} to {high}$"):
            Settings().override({name: str(number)})


@pytest.mark.parametrize(("said", "what", "right"), BAD)
def test_a_bad_setting_says_what_where_and_what_would_be_right(
    said: str, what: str, right: str, tmp_path: Path
) -> None:
    file = env_file(tmp_path, f"# mine\n\n{said}\n")
    for error, where in ((refusal(file=file), f"{file}, line 3"), (refusal(said), "(command line)")):
        assert what in error
        assert where in error
        assert right in error


@pytest.mark.parametrize(("said", "what", "right"), [one for one in BAD if "=" in one[1]])
def test_a_bad_setting_in_the_environment_says_so(said: str, what: str, right: str) -> None:
    name, _, value = said.partition("=")
    error = refusal(file=NOWHERE, **{name: value})
    assert what in error
    assert "(environment)" in error
    assert right in error


@pytest.mark.parametrize("line", ['MODEL="', "MODEL='a\" # b", 'MODEL="a" b', f"GROQ_API_KEY='{SECRET}"])
def test_a_quote_that_nothing_closes_is_said_without_what_it_holds(line: str, tmp_path: Path) -> None:
    name = line.partition("=")[0]
    error = refusal(file=env_file(tmp_path, f"\n{line}\n"))
    assert error == f"{name} ({tmp_path / '.env'}, line 2) should end with the quote that it begins with"


@pytest.mark.parametrize(
    ("file", "environment", "arguments", "where"),
    [
        ("", {}, [], "default"),
        ("SEED=2\nMODEL=a\nMODEL=b\n", {}, [], "{file}, line 3"),
        ("MODEL=a\nMODEL=\n", {}, [], "{file}, line 1"),
        ("MODEL=a\n", {"MODEL": "b"}, [], "environment"),
        ("MODEL=a\n", {"MODEL": " "}, [], "{file}, line 1"),
        ("MODEL=a\n", {"MODEL": "b"}, ["SEED=1", "MODEL=c"], "command line"),
        ("MODEL=a\n", {"MODEL": "b"}, ["MODEL="], "environment"),
    ],
)
def test_the_origin_of_a_value_is_where_it_was_given(
    file: str, environment: dict[str, str], arguments: list[str], where: str, tmp_path: Path
) -> None:
    path = env_file(tmp_path, file)
    said = settings.find_value_origin("MODEL", arguments, environment=environment, env_file=path)
    assert said == where.format(file=path)


def test_a_very_long_value_is_not_repeated_in_full() -> None:
    assert len(refusal(f"SEED={'x' * 100_000}")) < 300


def test_words_are_taken_in_any_case_and_numbers_as_people_write_them() -> None:
    chosen = load_settings(
        ["BUDGET=SOFT", "FALLBACK=None", "TOXIC_PROB=.5", "TOXICS=latency", "TOXIPROXY_URL=http://127.0.0.1:8474/"],
        environment={},
        env_file=NOWHERE,
    )
    assert (chosen.budget, chosen.fallback, chosen.toxic_prob) == ("soft", "none", 0.5)
    assert (chosen.toxics, chosen.toxiproxy_url) == ((("latency", 1.0),), "http://127.0.0.1:8474")


@pytest.mark.parametrize(
    ("said", "moment"),
    [
        ("2026-06-01", "2026-06-01T00:00:00Z"),
        ("2026-06-01T11:00:00+02:00", "2026-06-01T09:00:00Z"),
        ("2026-06-01T09:00:00", "2026-06-01T09:00:00Z"),
        ("0999-01-01T00:00:00Z", "0999-01-01T00:00:00Z"),
    ],
)
def test_now_is_one_moment_in_utc(said: str, moment: str) -> None:
    assert Settings().override({"NOW": said}).now == moment
    assert Settings().override({"NOW": moment}).now == moment


def test_now_may_be_the_clocks_and_then_stands() -> None:
    chosen = Settings().override({"NOW": "now"})
    assert chosen.now != "now"
    assert load_settings(environment=chosen.to_environment(), env_file=NOWHERE).now == chosen.now


words = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=12)
chances = st.floats(0, 1)
above_0 = st.floats(0, 1e12, exclude_min=True)
seconds = st.floats(0, SECONDS_MAX, exclude_min=True)
milliseconds = st.floats(0, 1000 * SECONDS_MAX)


def weights(*known: str) -> st.SearchStrategy[Any]:
    pair = st.tuples(st.sampled_from(known), st.floats(0, 1e6, exclude_min=True))
    return st.lists(pair, min_size=1, max_size=len(known), unique_by=lambda p: p[0]).map(tuple)


any_settings = st.builds(
    Settings,
    groq_api_key=st.just("") | words,
    model=st.just("") | words,
    model_url=st.sampled_from(["", "https://api.groq.com", "http://127.0.0.1:5007/openai"]),
    seed=st.integers(0, 2**63 - 1),
    repeats=st.integers(1, 1000),
    prompts=st.just("") | words,
    now=st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31)).map(
        lambda moment: moment.isoformat(timespec="seconds") + "Z"
    ),
    toxic_prob=chances,
    toxics=weights("timeout", "latency", "reset_peer", "refused"),
    toxic_targets=st.lists(words, min_size=1, max_size=4).map(tuple),
    latency_ms=milliseconds,
    jitter_ms=milliseconds,
    timeout_ms=milliseconds,
    model_toxic_prob=chances,
    error_prob=chances,
    errors=weights("tool_error", "lost_reply"),
    error_targets=st.lists(words, min_size=1, max_size=4).map(tuple),
    hallucination_prob=chances,
    context_prob=chances,
    token_limit=st.none() | above_0,
    cost_limit_usd=st.none() | above_0,
    call_limit=st.none() | above_0,
    time_limit_s=st.none() | seconds,
    budget=st.sampled_from(["hard", "soft"]),
    agent=st.sampled_from(["naive", "default", "careful"]),
    tool_limit=st.none() | st.integers(0, 20),
    prompt_limit=st.none() | st.integers(0, 20),
    fallback=st.sampled_from(["", "direct", "none"]),
    tool_timeout_s=seconds,
    model_timeout_s=seconds,
    toxiproxy_url=st.sampled_from(["", "http://127.0.0.1:8474"]),
    base_port=st.none() | st.integers(1024, 60000),
)


@given(any_settings)
def test_a_child_loads_from_its_environment_the_very_settings_of_its_parent(chosen: Settings) -> None:
    assert load_settings(environment=chosen.to_environment(), env_file=NOWHERE) == chosen
    assert (
        load_settings(
            [f"{name}={text}" for name, text in chosen.to_environment().items()], environment={}, env_file=NOWHERE
        )
        == chosen
    )


@given(any_settings)
def test_what_is_shown_is_json_and_never_a_secret(chosen: Settings) -> None:
    shown = json.loads(json.dumps(chosen.to_masked_dict()))
    assert list(shown) == [name for name in NAMES if name != "JOBS"]  # on which nothing depends
    assert shown["GROQ_API_KEY"] == ("***" if chosen.groq_api_key else "")
    assert SECRET not in json.dumps(shown)
    assert shown["SEED"] == chosen.seed


@given(any_settings)
def test_what_was_shown_is_read_back_but_for_the_secrets(chosen: Settings) -> None:
    back = Settings.from_masked_dict(json.loads(json.dumps(chosen.to_masked_dict())), where="info.log")
    assert back == replace(chosen, groq_api_key="", jobs=None, **chosen.resilience)


def test_what_no_version_of_ours_has_shown_is_said_with_its_place() -> None:
    with pytest.raises(SettingError, match=r"^SEED=x \(info\.log\) should be a whole number"):
        Settings.from_masked_dict({"SEED": "x"}, where="info.log")


def test_a_childs_environment_is_this_ones_with_the_settings_in_force(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEED", "1")
    child = settings.build_child_environment(Settings(seed=9, groq_api_key=SECRET))
    assert (child["SEED"], child["GROQ_API_KEY"], child["PATH"]) == ("9", SECRET, os.environ["PATH"])
    assert load_settings(environment=child, env_file=NOWHERE) == Settings(seed=9, groq_api_key=SECRET)


@pytest.mark.parametrize(
    "said",
    [f"GROQ_API_KEYS={SECRET}", f"GROQ_API_KEY:{SECRET}", f"GROQ_API_KEY {SECRET}", f"groq_api_key={SECRET}", SECRET],
)
def test_no_error_shows_a_key_that_was_mistyped(said: str, tmp_path: Path) -> None:
    assert SECRET not in refusal(file=env_file(tmp_path, said)) + refusal(said)


@pytest.mark.parametrize("key", [f"{SECRET} {SECRET}", f"{SECRET}é", f"{SECRET}\x7f"])
def test_a_key_that_no_header_can_carry_is_refused_and_not_shown(key: str) -> None:
    error = refusal(f"GROQ_API_KEY={key}")
    assert error.startswith("GROQ_API_KEY= (command line) should be a key")
    assert SECRET not in error


def test_the_model_and_the_limit_on_dollars_depend_on_the_key() -> None:
    offline, online = Settings(), Settings(groq_api_key=SECRET)
    assert (offline.model_name, offline.effective_cost_limit_usd) == ("chaoslab-offline", None)
    assert (online.model_name, online.effective_cost_limit_usd) == ("llama-3.3-70b-versatile", 0.5)
    assert Settings(groq_api_key=SECRET, cost_limit_usd=3.0, model="mine").effective_cost_limit_usd == 3.0
    assert Settings(groq_api_key=SECRET, model="mine").model_name == "mine"


def test_tracing_stays_off_whatever_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2", "LANGCHAIN_CALLBACKS_BACKGROUND"):
        monkeypatch.setenv(name, "true")
    settings.turn_tracing_off()
    assert (os.environ["LANGSMITH_TRACING"], os.environ["LANGCHAIN_TRACING_V2"]) == ("false", "false")


@pytest.mark.parametrize("held", ["nonsense", "", None])
def test_a_variable_is_hidden_for_a_while_and_then_as_it_was(held: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MPLBACKEND", raising=False)
    if held is not None:
        monkeypatch.setenv("MPLBACKEND", held)
    with settings.hide_variable("MPLBACKEND"):
        assert "MPLBACKEND" not in os.environ
    assert os.environ.get("MPLBACKEND") == held


def test_what_docker_compose_reads_from_the_same_file_is_let_be(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("COMPOSE_PROJECT_NAME=two\nSTATUS_PORT=18000\nTOXIPROXY_PORT=18474\nSEED=9\n")
    assert load_settings(environment={}, env_file=file).seed == 9


def test_a_run_has_so_many_trials_or_every_prompt_so_often() -> None:
    assert (Settings().count_trials(26), Settings(repeats=3).count_trials(26)) == (26, 78)
    assert (Settings(trials=5).count_trials(26), Settings(trials=60, repeats=3).count_trials(26)) == (5, 60)


@pytest.mark.usefixtures("here")
def test_a_file_of_settings_is_checked_without_a_run(capsys: pytest.CaptureFixture[str]) -> None:

    def checked(text: str | None, **variables: str) -> tuple[int, list[str]]:
        Path(".env").unlink(missing_ok=True)
        if text is not None:
            Path(".env").write_text(text)
        with settings.set_variables(variables):
            code = cli.main(["check", ".env"])
        return code, "".join(capsys.readouterr()).splitlines()

    assert checked("TOXC_PROB=0.9\nSEED=2\nTOXIC_PROB=7\nCOMPOSE_X=1\n") == (
        2,
        [
            "TOXC_PROB is not a setting (.env, line 1); did you mean TOXIC_PROB?",
            "TOXIC_PROB=7 (.env, line 3) should be a chance from 0 to 1",
        ],
    )
    assert checked(None, TOXIC_PROB="7") == (2, ["TOXIC_PROB=7 (environment) should be a chance from 0 to 1"])
    code, (line,) = checked(None, SAYS_UNDONE="could (not")
    assert code == 2
    assert line.startswith("SAYS_UNDONE=could (not (environment) should be a regular expression (missing )")
    assert checked(None) == (0, ["nothing is wrong with the settings of the environment; there is no .env"])
    stops = "FAULTS=service_down:0.1\n"
    assert checked(stops, WORLD="compose", STOPPER="host")[0] == checked(stops)[0] == 0
    code, (line,) = checked(stops, WORLD="compose", STOPPER="none")
    assert (code, line.partition(",")[0]) == (2, "FAULTS names 'service_down'")
    Path("mine.json").write_text('["How warm is it?", {"promt": "x"}]')
    code, (line,) = checked("PROMPTS=mine.json\n")
    assert (code, line.startswith("PROMPTS=mine.json, prompt 2: ")) == (2, True), line
    assert checked("PROMPTS=no.json\n")[1][0].startswith("PROMPTS=no.json cannot be read: ")
    code, (line,) = checked(None, WORLD="containers", STOPPER="none")
    assert (code, line.partition(" should be")[0]) == (2, "WORLD=containers (environment)")
    fine = "nothing is wrong with the settings of .env and the environment"
    unused = "WORLD=virtual is not used: containers are WORLD=compose"
    assert checked("WORLD=virtual\n", STOPPER="none") == (0, [unused, fine])
    assert checked("SEED=2\n", STOPPER="none") == (0, [fine])
    assert checked("WORLD=virtual\n") == checked("WORLD=compose\n", STOPPER="none") == (0, [fine])
