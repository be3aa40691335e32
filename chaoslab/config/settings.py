"""Every setting of the lab: its name, meaning, default and bounds, in one table. Command line > environment > `.env` >
default; an empty value means unset. This module alone reads the environment."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from chaoslab.base import former, parsers, secrets
from chaoslab.base.files import Unreadable, load_text

DEFAULT_NOW = "2026-06-01T09:00:00Z"
COST_LIMIT_WITH_KEY_USD = 0.5
GROQ_URL = "https://api.groq.com"
GROQ_MODEL = "llama-3.3-70b-versatile"
OFFLINE_MODEL = "chaoslab-offline"
COMPOSES_OWN = (
    "COMPOSE_",
    "DOCKER_",
    "STATUS_PORT",
    "TOXIPROXY_PORT",
    "PYTHON_IMAGE",
    "TOXIPROXY_IMAGE",
    "PROMETHEUS_IMAGE",
    "GRAFANA_",
)
"""The starts of other names that `.env` may hold, since `docker compose` reads it too."""
OF_SERVICES = ("NOW", "SECRET_NAMES", "MODEL_TOKEN_MS")
"""The settings, beside keys and places, that a service of the lab or the model's fake reads."""
AGENTS: dict[str, dict[str, Any]] = {
    "naive": {"tool_limit": 0, "prompt_limit": 0, "fallback": "none"},
    "default": {"tool_limit": 1, "prompt_limit": 1, "fallback": "direct"},
    "careful": {"tool_limit": 3, "prompt_limit": 3, "fallback": "direct"},
}
"""The settings that each value of AGENT stands for."""


class SettingError(ValueError):
    """A wrong setting. Its text names the setting, its origin, and what would be right."""


def _define_setting(
    default: Any, parse: Callable[[str], Any], doc: str, *, group: str = "", secret: bool = False
) -> Any:
    return field(default=default, metadata={"parse": parse, "doc": doc, "group": group, "secret": secret})


def _describe_agent_defaults(name: str) -> str:
    return f"Empty: {', '.join(f'{defaults[name]} ({agent})' for agent, defaults in AGENTS.items())}."


@dataclass(frozen=True)
class Settings:
    """All settings in force. A field's environment name is its own name in capitals."""

    groq_api_key: str = _define_setting(
        "", parsers.parse_api_key, "A Groq key. Empty: the offline model answers.", group="The model", secret=True
    )
    model: str = _define_setting("", str, f"The model's name. Empty: {GROQ_MODEL} with a key, {OFFLINE_MODEL} without.")
    model_url: str = _define_setting(
        "",
        parsers.parse_url,
        f"An OpenAI-compatible address, without its /openai/v1. Empty: {GROQ_URL} with a key, `chaoslab model` "
        "without.",
    )
    stream: str = _define_setting(
        "auto",
        parsers.make_choice_parser("auto", "off", "on"),
        "on: the model's answers come in parts, as its tokens are made. auto: on if faults of streams are asked for.",
    )
    model_token_ms: float = _define_setting(
        0.0, parsers.parse_milliseconds, "Milliseconds between two parts of an offline answer that is streamed."
    )

    seed: int = _define_setting(
        1,
        parsers.make_integer_parser(0, 2**63 - 1),
        "The seed of all dice: the same seed draws the same faults.",
        group="The run",
    )
    repeats: int = _define_setting(
        1, parsers.make_integer_parser(1, 1000), "The whole prompt file so many times, each time with other dice."
    )
    trials: int | None = _define_setting(
        None,
        parsers.make_integer_parser(1, 1_000_000),
        "So many trials in all: the prompts in order, then again from the first. Empty: every prompt REPEATS times.",
    )
    world: str = _define_setting(
        "local",
        parsers.make_choice_parser("local", "compose", "virtual"),
        "Where the lab runs: processes on loopback (local), containers (compose), or one process on a clock that jumps "
        "(virtual).",
    )
    jobs: int | None = _define_setting(
        None,
        parsers.make_integer_parser(1, 256),
        "Processes of a virtual run. Empty: one, or as many as there are cores for a long run.",
    )
    deadline_s: float = _define_setting(
        3600.0,
        parsers.parse_seconds,
        "Virtual seconds that one trial may take before it counts as hung (virtual world).",
    )
    prompts: str = _define_setting("", str, "A JSON file of prompts. Empty: the prompts that come with the agent.")
    says_undone: str = _define_setting(
        "could not|couldn't|unable to|not able to",
        parsers.parse_regex,
        "A regular expression for answers that say that something was not done. Empty: no words of an answer decide.",
    )
    now: str = _define_setting(
        DEFAULT_NOW,
        parsers.parse_moment,
        "What the tools and the model call now (UTC); `now` is the clock's. Fixed, so that a seed repeats.",
    )

    toxic_prob: float = _define_setting(
        0.1,
        parsers.parse_chance,
        "Chance that one attempt of a tool request goes over a poisoned connection.",
        group="Faults of the network",
    )
    toxics: parsers.Weights = _define_setting(
        (("timeout", 1.0), ("latency", 1.0)),
        parsers.make_weights_parser("faults", "network"),
        "Which faults of the network, by weight. Up- or downstream is drawn too.",
    )
    toxic_targets: tuple[str, ...] = _define_setting(
        ("all",), parsers.parse_service_names, "Services whose connections may be poisoned: all, or names with commas."
    )
    toxic_triggers: str = _define_setting(
        "",
        str,
        "More conditions on these faults, as JSON with the names of inject(): "
        '{"max_times": 2, "tool": "get_*", "when": "amount > 100"}. Empty: none.',
    )
    latency_ms: float = _define_setting(500.0, parsers.parse_milliseconds, "How late, in milliseconds.")
    jitter_ms: float = _define_setting(
        200.0, parsers.parse_milliseconds, "More or less by up to so much, in milliseconds."
    )
    timeout_ms: float = _define_setting(
        0.0, parsers.parse_milliseconds, "How long a timeout holds the connection before it closes; 0: never answers."
    )
    model_toxic_prob: float = _define_setting(0.0, parsers.parse_chance, "The same chance for the model's connection.")
    network: str = _define_setting(
        "off",
        parsers.make_choice_parser("off", "good", "moderate", "poor", "degrading", "spiky", "production"),
        "The network of each call of the services in TOXIC_TARGETS, or of the model (production), beside these faults.",
    )

    error_prob: float = _define_setting(
        0.1,
        parsers.parse_chance,
        "Chance that one attempt of a tool request meets an application error.",
        group="Faults of tools and meaning",
    )
    errors: parsers.Weights = _define_setting(
        (("tool_error", 4.0), ("lost_reply", 1.0)),
        parsers.make_weights_parser("faults", "tool"),
        "Which faults of tools, by weight; tool_error: the service's own 500, 503, 429, 401 or 404; lost_reply: done, "
        "but unanswered.",
    )
    error_targets: tuple[str, ...] = _define_setting(
        ("all",), parsers.parse_service_names, "Services that may fail or answer wrongly: all, or names with commas."
    )
    error_triggers: str = _define_setting(
        "", str, "The same conditions for errors of tools and wrong values. Empty: none."
    )
    hallucination_prob: float = _define_setting(
        0.0, parsers.parse_chance, "Chance that a tool's answer has a wrong value in it."
    )
    context_prob: float = _define_setting(
        0.0, parsers.parse_chance, "Chance that a model call loses the oldest half of its messages."
    )

    stream_prob: float = _define_setting(
        0.0,
        parsers.parse_chance,
        "Chance that one attempt of a model call meets a fault of its stream. STREAM=off leaves none.",
        group="Faults of streams",
    )
    stream_faults: parsers.Weights = _define_setting(
        (("cut", 1.0), ("stall", 1.0), ("slow_chunks", 1.0)),
        parsers.make_weights_parser("faults", "stream"),
        "Which faults of streams, by weight; cut: the answer ends early and nobody says so; stall: it stands still in "
        "its middle; slow_chunks: it comes drop by drop.",
    )

    faults: parsers.Weights = _define_setting(
        (),
        parsers.make_chances_parser("faults"),
        "Any faults, each with the chance that an attempt meets it: stale:0.2,refusal:0.1. Those of the model, its "
        "context and its streams hit the model, all others the services; server_error@model:0.1 names the target. "
        "`chaoslab faults` lists all. A chance of 0 switches a fault off, as in a sweep. Empty: none.",
        group="Faults of any kind",
    )
    chaos_level: float = _define_setting(
        0.0,
        parsers.parse_chaos_level,
        "One number for all, from 0 to 10. An attempt at a service or the model meets a fault with a chance of 10 % × "
        "the level.",
    )
    chaos_families: tuple[str, ...] = _define_setting(
        ("network", "tool", "meaning", "model", "context"),
        parsers.make_choices_parser("network", "tool", "meaning", "model", "stream", "context"),
        "The families that CHAOS_LEVEL draws from. stream needs STREAM=auto or on.",
    )

    token_limit: float | None = _define_setting(
        None, parsers.parse_positive, "Tokens that one trial may use. Empty: no limit.", group="Budgets"
    )
    cost_limit_usd: float | None = _define_setting(
        None,
        parsers.parse_positive,
        f"Dollars that the run may cost. Empty: no limit, but {COST_LIMIT_WITH_KEY_USD:g} with a key.",
    )
    call_limit: float | None = _define_setting(
        None, parsers.parse_positive, "Calls to tools and model that one trial may make. Empty: no limit."
    )
    time_limit_s: float | None = _define_setting(
        None, parsers.parse_seconds, "Seconds that one trial may take. Empty: no limit."
    )
    budget: str = _define_setting(
        "hard",
        parsers.make_choice_parser("hard", "soft"),
        "hard: a call over the limit is refused; soft: it is only logged.",
    )

    agent: str = _define_setting(
        "default",
        parsers.make_choice_parser(*AGENTS),
        "How well the agent helps itself, in one word: naive never tries again and has no fallback, careful tries more "
        "often. It decides the next three where they are empty.",
        group="The agent's resilience",
    )
    tool_limit: int | None = _define_setting(
        None,
        parsers.make_integer_parser(0, 20),
        "Retries of one tool request: 1 means two attempts, with one request id. "
        f"{_describe_agent_defaults('tool_limit')}",
    )
    prompt_limit: int | None = _define_setting(
        None,
        parsers.make_integer_parser(0, 20),
        "Retries of a prompt after a model error, an empty answer or the loop bound. "
        f"{_describe_agent_defaults('prompt_limit')}",
    )
    fallback: str = _define_setting(
        "",
        parsers.make_choice_parser("direct", "none"),
        f"After the last retry: one call around the proxy (direct), or none. {_describe_agent_defaults('fallback')}",
    )
    tool_timeout_s: float = _define_setting(
        2.0, parsers.parse_seconds, "Deadline of one attempt at a tool, in seconds."
    )
    model_timeout_s: float = _define_setting(
        30.0,
        parsers.parse_seconds,
        "Deadline of one attempt at the model, in seconds; of a stream, for its head and for each part.",
    )

    secret_names: tuple[str, ...] = _define_setting(
        (),
        parsers.parse_field_names,
        "Further names of headers and fields whose values are masked in logs and in print; a name after a minus is "
        "spared.",
        group="Secrets",
    )

    toxiproxy_url: str = _define_setting(
        "", parsers.parse_url, "A Toxiproxy server to use. Empty: the embedded one.", group="Where things are"
    )
    toxiproxy_metrics: str = _define_setting(
        "false",
        parsers.make_choice_parser("false", "true"),
        "true: the Toxiproxy of `make compose` tells its own figures at its /metrics: bytes by proxy, and its process.",
    )
    base_port: int | None = _define_setting(
        None,
        parsers.make_integer_parser(1024, 60000),
        "Services from here, proxies 1000 above, manager 3000 and Toxiproxy 3474 above. Empty: 5000, or higher where "
        "taken.",
    )

    def override(self, texts: Mapping[str, str], *, where: str = "") -> Settings:
        """These settings with some replaced, given by environment name and as text. Raises SettingError: an unknown
        name, or a value out of its bounds."""
        table = {f.name.upper(): f for f in fields(self)}
        values: dict[str, Any] = {}
        for name, text in texts.items():
            at = f" ({where})" if where else ""
            if name not in table:
                instead = former.SETTINGS.get(name)
                hint = f"; {instead}" if instead else parsers.hint_closest(name.upper(), table)
                raise SettingError(f"{name} is not a setting{at}{hint}")
            if not text.strip():
                continue
            if "\0" in text:  # no environment can carry it to the lab's other processes
                raise SettingError(f"{name}{at} has a NUL character in it; a value is one line of text")
            try:
                values[table[name].name] = table[name].metadata["parse"](text.strip())
            except ValueError as error:
                shown_text = "" if table[name].metadata["secret"] else secrets.printed.mask(text.strip())[:60]
                raise SettingError(f"{name}={shown_text}{at} should be {error}") from None
        return replace(self, **values)

    def count_trials(self, prompts: int) -> int:
        """The number of trials of a file with this number of prompts."""
        return self.trials or prompts * self.repeats

    def to_masked_dict(self) -> dict[str, Any]:
        """All settings by environment name, as JSON, with secrets masked, and with what AGENT stands for. JOBS is left
        out, since no result depends on it."""
        values = {
            f.name.upper(): ("***" if getattr(self, f.name) else "") if f.metadata["secret"] else getattr(self, f.name)
            for f in fields(self)
            if f.name != "jobs"
        }
        return values | {name.upper(): value for name, value in self.resilience.items()}

    @property
    def resilience(self) -> dict[str, Any]:
        """`tool_limit`, `prompt_limit` and `fallback` in force: as set, else as AGENT says."""
        stated = {name: getattr(self, name) for name in AGENTS[self.agent]}
        return AGENTS[self.agent] | {name: value for name, value in stated.items() if value not in (None, "")}

    @classmethod
    def from_masked_dict(cls, texts: Mapping[str, Any], *, where: str) -> Settings:
        """The settings that `texts` was made of, read back from JSON. Secrets come back empty, since `texts` masks
        them. Raises SettingError: a name or a value that this version does not know; the text names `where`."""
        secret = {f.name.upper() for f in fields(cls) if f.metadata["secret"]}
        return cls().override(
            {n: format_value(lists_to_tuples(v)) for n, v in texts.items() if n not in secret}, where=where
        )

    def to_environment(self) -> dict[str, str]:
        """The environment variables with which a child process loads these very settings."""
        return {f.name.upper(): format_value(getattr(self, f.name)) for f in fields(self)}

    @property
    def is_streaming(self) -> bool:
        """True if the model's answers come in parts."""
        if self.stream != "auto":
            return self.stream == "on"
        if self.stream_prob or (self.chaos_level and "stream" in self.chaos_families):
            return True
        named = [entry.partition("@")[0] for entry, chance in self.faults if chance]
        if not named:
            return False
        from chaoslab.base.registry import list_family_plugins

        return not set(list_family_plugins("faults", "stream")).isdisjoint(named)

    @property
    def model_name(self) -> str:
        return self.model or (GROQ_MODEL if self.groq_api_key else OFFLINE_MODEL)

    @property
    def effective_cost_limit_usd(self) -> float | None:
        return self.cost_limit_usd or (COST_LIMIT_WITH_KEY_USD if self.groq_api_key else None)


def lists_to_tuples(value: Any) -> Any:
    """JSON's lists as the tuples that they were."""
    return tuple(lists_to_tuples(entry) for entry in value) if isinstance(value, list) else value


def format_value(value: Any) -> str:
    """A value as it is written in `.env`."""
    if value is None:
        return ""
    if isinstance(value, tuple):
        return ",".join(f"{v[0]}:{format_value(v[1])}" if isinstance(v, tuple) else str(v) for v in value)
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


def load_settings(
    arguments: Iterable[str] = (), *, environment: Mapping[str, str] | None = None, env_file: Path = Path(".env")
) -> Settings:
    """The settings in force, from `NAME=value` arguments, the environment and the file, in this order of precedence.
    Raises SettingError: one line that says what is wrong, where, and what would be right."""
    environment = copy_environment() if environment is None else environment
    settings = Settings()
    for source, texts in _iterate_lab_settings(env_file):
        settings = settings.override(texts, where=source)
    typed: dict[str, str] = {}
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if not equals:
            raise SettingError(
                f"{_quote_first_word(argument)} (command line) is not understood: settings are given as NAME=value, "
                "e.g. TOXIC_PROB=0.3"
            )
        typed[name] = value
    # make passes its command line in the environment too. An error must name the command line as the origin.
    unstated = {f.name.upper() for f in fields(Settings) if not typed.get(f.name.upper(), "").strip()}
    settings = settings.override({k: v for k, v in environment.items() if k in unstated}, where="environment")
    settings = settings.override(typed, where="command line")
    secrets.set_secret_names(settings.secret_names)
    return settings


def find_wrong_lines(env_file: Path) -> list[str]:
    """A line for each line of the file that no setting can be read from."""
    errors = []
    try:
        for source, texts in _iterate_lab_settings(env_file):
            try:
                Settings().override(texts, where=source)
            except SettingError as error:
                errors.append(str(error))
    except SettingError as error:
        errors.append(str(error))
    return errors


def load_secret_names(further: Iterable[str] = ()) -> None:
    """Takes SECRET_NAMES from the environment, and more names, for a process that loads no settings. Raises
    SettingError: as `load_settings`."""
    texts = {"SECRET_NAMES": read_variable("SECRET_NAMES")}
    secrets.set_secret_names([*Settings().override(texts, where="environment").secret_names, *further])


def find_value_origin(
    name: str,
    arguments: Iterable[str] = (),
    *,
    environment: Mapping[str, str] | None = None,
    env_file: Path = Path(".env"),
) -> str:
    """The origin of the value in force, for the error about a value that proves wrong only in use."""
    environment = copy_environment() if environment is None else environment
    source = "default"
    # The last line that states it is in force, as in `load_settings`.
    for number, key, value in _parse_env_file(env_file):
        source = f"{env_file}, line {number}" if key == name and value else source
    names = {key for key, _, value in (argument.partition("=") for argument in arguments) if value.strip()}
    return "command line" if name in names else "environment" if environment.get(name, "").strip() else source


_QUOTED = re.compile(r"""(?P<mark>['"])(?P<text>.*?)(?P=mark)(\s+#.*)?""")
_COMMENT = re.compile(r"(^|\s)#.*")


def _quote_first_word(text: str) -> str:
    """The first word of a text that was not understood. The rest may be a key that lost its name, so it is not
    shown."""
    word = text[: len(text) - len(text.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"))]
    return f"'{word}'" if word == text else f"'{word}…'"


def _parse_env_file(path: Path) -> Iterable[tuple[int, str, str]]:
    """(line, name, value) of each setting in the file; none if there is no file."""
    try:
        text = load_text(path)
    except Unreadable as error:
        if error.missing:
            return
        raise SettingError(f"{path} {error}; it should be a file of lines NAME=value") from None
    for number, line in enumerate(text.split("\n"), 1):
        # A shell may read such a file too.
        line = line.strip().removeprefix("export ").strip()
        if not line or line.startswith("#"):
            continue
        name, equals, value = line.partition("=")
        if not equals:
            raise SettingError(
                f"{_quote_first_word(line)} ({path}, line {number}) is not understood: lines read NAME=value"
            )
        value = value.strip()
        quoted = _QUOTED.fullmatch(value)
        if value[:1] in ("'", '"') and not quoted:
            raise SettingError(f"{name.strip()} ({path}, line {number}) should end with the quote that it begins with")
        yield number, name.strip(), quoted["text"] if quoted else _COMMENT.sub("", value).strip()


def _iterate_lab_settings(env_file: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """(place, {name: value}) of each line of the file that is the lab's."""
    for number, name, value in _parse_env_file(env_file):
        if not name.startswith(COMPOSES_OWN):
            yield f"{env_file}, line {number}", {name: value}


def render_env_example() -> str:
    """The text of `.env.example`: every setting with its meaning and default."""
    lines = ["# Every setting of the lab, with its default. Copy to .env and change what you like; empty means unset."]
    for f in fields(Settings):
        if f.metadata["group"]:
            lines += ["", f"# --- {f.metadata['group']} ---"]
        lines += [f"# {f.metadata['doc']}", f"{f.name.upper()}={format_value(f.default)}"]
    return "\n".join(lines) + "\n"


def list_settings() -> list[dict[str, Any]]:
    """All settings as JSON values: name, default and meaning."""
    return [
        {"name": f.name.upper(), "default": format_value(f.default), "meaning": f.metadata["doc"]}
        for f in fields(Settings)
    ]


BAR = r"\|"
"""A bar within a cell of a Markdown table."""


def render_markdown_table() -> str:
    """All settings as a Markdown table, for the reference."""
    lines = ["| setting | default | meaning |", "|---|---|---|"]
    for f in fields(Settings):
        lines.append(f"| {f.name.upper()} | {format_value(f.default).replace('|', BAR)} | {f.metadata['doc']} |")
    return "\n".join(lines) + "\n"


def read_variable(name: str) -> str:
    """A variable of the environment, for a key that a configuration file refers to by name; empty if unset."""
    return os.environ.get(name, "")


def get_program_name() -> str:
    """chaoslab as the user's shell finds it: in a container it is called from outside."""
    return read_variable("CHAOSLAB_PROGRAM") or "chaoslab"


def build_child_environment(settings: Settings) -> dict[str, str]:
    """This process's environment with the settings in force."""
    return {**os.environ, **settings.to_environment()}


def turn_tracing_off() -> None:
    """Turns tracing services off, whatever the environment says, so no prompt leaves: the log is the only output."""
    os.environ.update(LANGSMITH_TRACING="false", LANGCHAIN_TRACING_V2="false", LANGCHAIN_CALLBACKS_BACKGROUND="false")


@contextlib.contextmanager
def hide_variable(name: str) -> Iterator[None]:
    """A context in which the environment lacks this variable, for imports that read it. It is not one of the lab's."""
    value = os.environ.pop(name, None)
    try:
        yield
    finally:
        if value is not None:
            os.environ[name] = value


def copy_environment() -> dict[str, str]:
    """This process's environment, as a command that it starts inherits it."""
    return dict(os.environ)


@contextlib.contextmanager
def set_variables(variables: Mapping[str, str]) -> Iterator[None]:
    """A context in which this process's environment has these variables."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
