"""Bad input, at every door: one line that says what, where and what would be right; a code; and nothing logged before
is touched.

The doors are called in this process where they end before they start anything, and as processes where that is what is
asked about.
"""

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from chaoslab import cli
from chaoslab.config.settings import Settings
from chaoslab.config.topology import Ports
from chaoslab.core import events
from chaoslab.core.exchange import Reply
from chaoslab.record.runs import Run
from tests import warm
from tests.cli_parts import as_installed, environment, execute, free_base
from tests.event_parts import run_started
from tests.seams.lab_parts import Heard, said, site
from tests.waiting import HUNG_S

ROOT = Path(__file__).parents[1]
Captured = pytest.CaptureFixture[str]
KEY = "gsk_N0bodyMaySeeThis"
EARLIER = "20260101-120000"
LIKE = 'a list like [{"prompt": "What is 6 times 7?"}]'
FOLDER = None
PIPE, ZEROES, ENDLESS = "a pipe", "/dev/zero", "a file of 17 MiB"
"""More that may stand in a file's place."""
IRREGULAR = "and only regular files are read"
TOO_LARGE = "is larger than 16 MiB, the most that is read"


@dataclass(frozen=True, eq=False)
class Case:
    """A command, its files (`FOLDER`, `PIPE` …: what stands in a file's place), and the whole line that answers.

    In all texts, `{name}` stands for what the fixture `there` calls so; the line is matched from its start to its end,
    with `…` for what another machine may word differently. `apart`: as a process of its own. `starts`: it fails only
    once it has begun a run.
    """

    typed: str
    line: str
    files: Mapping[str, str | bytes | None] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    apart: bool = False
    starts: bool = False


def env(text: str | bytes | None, line: str) -> Case:
    return Case("chaoslab lab", line, {".env": text})


def prompts(text: object, line: str) -> Case:
    written = text if isinstance(text, str | bytes | None) else json.dumps(text)
    return Case("chaoslab lab PROMPTS=mine.json", f"PROMPTS=mine.json{line}", {"mine.json": written})


def config(text: object, line: str) -> Case:
    written = text if isinstance(text, str | bytes | None) else json.dumps(text)
    return Case("chaoslab agent --config mine.json", f"mine.json{line}", {"mine.json": written})


SECONDS = "should be a number above 0, up to 315360000 (ten years)"
CHANCE = "should be a chance from 0 to 1"
UNKNOWN = "is not a setting"
REFUSES = "give a key that it knows, or leave both GROQ_API_KEY and MODEL_URL empty for the offline model"
HOST, ADDRESS = "a host's name or an address like 127.0.0.1", "an address like http://127.0.0.1:8474"
NO_RUN = "this lab did not write them"
SERVER = "it should be the address of an OpenAI-compatible server, without /openai/v1"
PROXIES = "it should be a JSON file of proxies"
OTHER_PORT = "end what holds it, or choose another BASE_PORT than"

TWO = {
    **{f"two/{n}.chaos.yaml": f"name: {n}\nagent: agents:pay\ntools: [agents:charge]\nprompt: {n}\n" for n in "ab"},
    "two/agents.py": "def charge(order: int) -> str: ...\ndef pay(prompt: str) -> str: ...\n",
}
"""Two scenarios."""
CASES = [
    # --- .env ---
    env("TOXIC_PROB=1.5\n", f"TOXIC_PROB=1.5 (.env, line 1) {CHANCE}"),
    env("# mine\nTOXIC_PROB=nan\n", f"TOXIC_PROB=nan (.env, line 2) {CHANCE}"),
    env("TOXIC_PROB=abc", f"TOXIC_PROB=abc (.env, line 1) {CHANCE}"),
    env("TOXIC_PROB=0,3", f"TOXIC_PROB=0,3 (.env, line 1) {CHANCE}"),
    env("TOXIC_PROB='0.3\n", "TOXIC_PROB (.env, line 1) should end with the quote that it begins with"),
    env(f'GROQ_API_KEY="{KEY}\n', "GROQ_API_KEY (.env, line 1) should end with the quote that it begins with"),
    env(
        f"GROQ_API_KEY={KEY} {KEY}\n",
        "GROQ_API_KEY= (.env, line 1) should be a key: letters, digits and signs without blanks",
    ),
    env(f"{KEY}\n", "'gsk_N…' (.env, line 1) is not understood: lines read NAME=value"),
    env("TOXIC_PRB=0.1\n", f"TOXIC_PRB {UNKNOWN} (.env, line 1); did you mean TOXIC_PROB?"),
    env("MODEL=a\0b\n", "MODEL (.env, line 1) has a NUL character in it; a value is one line of text"),
    env("MODEL=Müller\n".encode("latin-1"), ".env is not UTF-8 text (byte 7); it should be a file of lines NAME=value"),
    Case(
        "chaoslab check .env",
        ".env is not UTF-8 text (byte 7); it should be a file of lines NAME=value",
        {".env": "MODEL=Müller\n".encode("latin-1")},
    ),
    env(FOLDER, ".env cannot be read: Is a directory; it should be a file of lines NAME=value"),
    env(PIPE, f".env cannot be read: it is a named pipe, {IRREGULAR}; it should be a file of lines NAME=value"),
    env(ZEROES, f".env cannot be read: it is a device, {IRREGULAR}; it should be a file of lines NAME=value"),
    env(ENDLESS, f".env {TOO_LARGE}; it should be a file of lines NAME=value"),
    env("SEED=2\n".encode("utf-16"), ".env is UTF-16 text: save it as UTF-8; it should be a file of lines NAME=value"),
    env(b"SEED=2\r\nMODEL=a\xe2\x80\xa8b\r\nTOXIC_PROB=2\r\n", f"TOXIC_PROB=2 (.env, line 3) {CHANCE}"),
    env("DEADLINE_S=1e300\n", f"DEADLINE_S=1e300 (.env, line 1) {SECONDS}"),
    env("TOOL_TIMEOUT_S=1e300\n", f"TOOL_TIMEOUT_S=1e300 (.env, line 1) {SECONDS}"),
    env("MODEL_TIMEOUT_S=1e300\n", f"MODEL_TIMEOUT_S=1e300 (.env, line 1) {SECONDS}"),
    env("TIME_LIMIT_S=1e300\n", f"TIME_LIMIT_S=1e300 (.env, line 1) {SECONDS}"),
    env("LATENCY_MS=1e300\n", "LATENCY_MS=1e300 (.env, line 1) should be a number from 0 to 315360000000 (ten years)"),
    env("NOW=9999-01-01\n", "NOW=9999-01-01 (.env, line 1) should be a moment in the years 2 to 9998"),
    env("NOW=0001-12-31\n", "NOW=0001-12-31 (.env, line 1) should be a moment in the years 2 to 9998"),
    Case(
        "chaoslab run --world virtual NOW=9998-06-01 DEADLINE_S=3e7 --trials 60",
        "NOW=9998-06-01T00:00:00Z, and then 60 trials of up to DEADLINE_S=3e+07 seconds, leads beyond the year 9999: "
        "choose an earlier NOW or a smaller DEADLINE_S",
    ),
    env("BASE_PORT=80\n", "BASE_PORT=80 (.env, line 1) should be a whole number from 1024 to 60000"),
    env("TOXIPROXY_URL=8474\n", "TOXIPROXY_URL=8474 (.env, line 1) should be an address like http://127.0.0.1:8474"),
    env("NOW=tomorrow\n", "NOW=tomorrow (.env, line 1) should be a moment like 2026-06-01T09:00:00Z, or now"),
    env("TOXICS=latancy\n", "TOXICS=latancy (.env, line 1) should be names with weights … did you mean latency?"),
    env("TOXIC_TARGETS=wether\n", "TOXIC_TARGETS names 'wether', which is no service: did you mean 'weather'?"),
    Case("chaoslab agent", f"TOXIC_PROB=2 (.env, line 1) {CHANCE}", {".env": "TOXIC_PROB=2"}),
    Case("chaoslab manager", f"SEEED {UNKNOWN} (.env, line 1); did you mean SEED?", {".env": "SEEED=2"}),
    # --- the same on the command line and in the environment ---
    Case("chaoslab lab TOXIC_PROB=1.5", f"TOXIC_PROB=1.5 (command line) {CHANCE}"),
    Case("chaoslab lab TOXIC_PROB=nan", f"TOXIC_PROB=nan (command line) {CHANCE}"),
    Case("chaoslab lab TOXIC_PRB=0.1", f"TOXIC_PRB {UNKNOWN} (command line); did you mean TOXIC_PROB?"),
    Case(
        "chaoslab lab 0.3",
        "'…' (command line) is not understood: settings are given as NAME=value, e.g. TOXIC_PROB=0.3",
    ),
    Case("chaoslab agent SEED=-1", "SEED=-1 (command line) should be a whole number from 0 to 9223372036854775807"),
    Case("chaoslab lab", f"TOXIC_PROB=abc (environment) {CHANCE}", environment={"TOXIC_PROB": "abc"}),
    Case("chaoslab manager", f"TOXIC_PROB=1.5 (environment) {CHANCE}", environment={"TOXIC_PROB": "1.5"}),
    # --- prompts ---
    Case(
        "chaoslab lab PROMPTS=none.json",
        f"PROMPTS=none.json cannot be read: No such file or directory; it should be a file with {LIKE}",
    ),
    prompts(FOLDER, f" cannot be read: Is a directory; it should be a file with {LIKE}"),
    prompts(PIPE, f" cannot be read: it is a named pipe, {IRREGULAR}; it should be a file with {LIKE}"),
    prompts(ZEROES, f" cannot be read: it is a device, {IRREGULAR}; it should be a file with {LIKE}"),
    prompts(ENDLESS, f" {TOO_LARGE}; it should be a file with {LIKE}"),
    prompts("", f" is not JSON: Expecting value: line 1 column 1 (char 0); it should be a file with {LIKE}"),
    prompts(
        '["one",\n "two"',
        f" is not JSON: Expecting ',' delimiter: line 2 column 7 (char 14); it should be a file with {LIKE}",
    ),
    prompts(b'["\xfc"]', f" is not UTF-8 text (byte 2); it should be a file with {LIKE}"),
    prompts('["Hello?"]'.encode("utf-16"), f" is UTF-16 text: save it as UTF-8; it should be a file with {LIKE}"),
    prompts('["Hello?"]'.encode("utf-16-le"), f" is UTF-16 text: save it as UTF-8; it should be a file with {LIKE}"),
    prompts("[" * 100_000, f" is nested deeper than 50 levels; it should be a file with {LIKE}"),
    prompts(
        '[{"prompt": "Hello?", "effects": [{"effect": "message_sent", "text": ' + "[" * 900 + "]" * 900 + "}]}]",
        f" is nested deeper than 50 levels: line 1 column 116; it should be a file with {LIKE}",
    ),
    prompts(
        '[{"prompt": "Hello?",\n  "prompt": "Who?"}]',
        f' has "prompt" twice in one object: line 2 column 3; it should be a file with {LIKE}',
    ),
    prompts(
        '[{"prompt": "Hello?", "effects": [{"effect": "message_sent",\r\n "t\\u006f": 1, "to": 2}]}]',
        f' has "to" twice in one object: line 2 column 16; it should be a file with {LIKE}',
    ),
    *(
        prompts(
            f'[{{"prompt": "Hello?", "effects": [{{"effect": "message_sent", "n": {spelt}}}]}}]',
            f" has {said}: line 1 column 67; it should be a file with {LIKE}",
        )
        for spelt, said in (
            ("NaN", "NaN in it, which is no JSON"),
            ("-Infinity", "-Infinity in it, which is no JSON"),
            ("1e400", "a number beyond 1.8e308 in it (1e400)"),
            ("9" * 5000, "a number beyond 1.8e308 in it (99999999999999999999)"),
        )
    ),
    *(
        prompts(
            json.dumps([{"prompt": "Hello?", "facts": [], "effects": []} | {field: stated}]),
            f" has half a surrogate pair in it (\\ud800): line 1 column {column}; it should be a file with {LIKE}",
        )
        for field, stated, column in (
            ("prompt", "Hello? \ud800", 13),
            ("facts", ["\U0001f600 \ud800"], 33),
            ("effects", [{"\ud800": 1}], 49),
        )
    ),
    prompts({"prompt": "Hello?"}, f" should hold {LIKE}"),
    prompts([], f" should hold {LIKE}"),
    prompts(["What is 2 + 2?", " "], ", prompt 2: prompt: it is empty"),
    prompts([""], ", prompt 1: prompt: String should have at least 1 character"),
    prompts(["x" * 100_000], ", prompt 1: prompt: String should have at most 20000 characters"),
    prompts([7], ", prompt 1 should be a text, or an object with a `prompt`"),
    prompts([{"prompt": 7}], ", prompt 1: prompt: Input should be a valid string"),
    prompts([{"promt": "Hello?"}], ", prompt 1: promt is not known: did you mean 'prompt'?"),
    prompts([{"prompt": "Hello?", "facts": "42"}], ", prompt 1: facts: Input should be a valid list"),
    prompts([{"prompt": "Hello?", "effects": ["sent"]}], ", prompt 1: effects.0: Input should be a valid dictionary"),
    Case(
        "chaoslab agent --prompts mine.json BASE_PORT={tools}",
        "PROMPTS=mine.json, prompt 1: facts: no tool is called 'current_wether': did you mean 'current_weather'?",
        {"mine.json": '[{"prompt": "Cold?", "facts": [{"tool": "current_wether", "path": "main.temp"}]}]'},
        starts=True,
    ),
    *(
        Case(
            f"{door} mine.json{rest}",
            f"PROMPTS=mine.json, prompt 1: {line}",
            {"mine.json": json.dumps([{"prompt": "Tell Ana.", **stated}])},
            starts=bool(rest),
        )
        for door, rest in (
            ("chaoslab run --world virtual --prompts", ""),
            ("chaoslab agent --prompts", " BASE_PORT={tools}"),
        )
        for stated, line in (
            (
                {"facts": [{"tool": "nope", "arguments": {}, "path": "a"}]},
                "facts: no tool is called 'nope': known are …",
            ),
            ({"facts": [{"tool": "current_weather", "path": "a"}]}, "facts: current_weather: city: Field required"),
            (
                {"effects": [{"effect": "mail_sent"}]},
                "effects: no effect is called 'mail_sent': did you mean 'message_sent'?",
            ),
            ({"effects": [{"a": 1}]}, "effects: no effect is called '': known are …"),
        )
    ),
    # --- agent/config.json ---
    Case(
        "chaoslab agent --config none.json",
        "none.json cannot be read: No such file or directory; it should be a file like agent/config.json",
    ),
    config(FOLDER, " cannot be read: Is a directory; it should be a file like agent/config.json"),
    config(PIPE, f" cannot be read: it is a named pipe, {IRREGULAR}; it should be a file like agent/config.json"),
    config(ZEROES, f" cannot be read: it is a device, {IRREGULAR}; it should be a file like agent/config.json"),
    config(ENDLESS, f" {TOO_LARGE}; it should be a file like agent/config.json"),
    config(
        '{"steps_max": }',
        " is not JSON: Expecting value: line 1 column 15 (char 14); it should be a file like agent/config.json",
    ),
    config(
        '{"steps_max": 3, "steps_max": 4}',
        ' has "steps_max" twice in one object: line 1 column 18; it should be a file like agent/config.json',
    ),
    config([], " holds no JSON object; it should be a file like agent/config.json"),
    config({"step_max": 3}, ": step_max is not known: did you mean 'steps_max'?"),
    config({"steps_max": 0}, ": steps_max: Input should be greater than or equal to 1"),
    config(
        {"services": {"wether": {"url": "http://x"}}},
        ": services: no service is called 'wether': did you mean 'weather'?",
    ),
    config({"services": {"weather": {"ulr": "http://x"}}}, ": services.weather.ulr is not known: did you mean 'url'?"),
    config({"tools_host": "a\0b"}, f": tools_host: it should be {HOST}"),
    config({"proxy_host": "two hosts"}, f": proxy_host: it should be {HOST}"),
    config({"manager_host": "a" * 64}, f": manager_host: it should be {HOST}"),
    config({"model_host": ""}, f": model_host: it should be {HOST}"),
    config({"services": {"weather": {"url": "http://a\0b/"}}}, f": services.weather.url: it should be {ADDRESS}"),
    config(
        {"services": {"weather": {"url": f"http://{'a' * 64}.org/"}}}, f": services.weather.url: it should be {ADDRESS}"
    ),
    config({"services": {"weather": {"url": "http://a..org/"}}}, f": services.weather.url: it should be {ADDRESS}"),
    *(
        Case(
            f"{door} {option} {'b' * 64}",
            f"{called}: argument {told or option}: {'b' * 60} should be {HOST}; see {called} --help",
        )
        for door, called, option, told in (
            ("chaoslab agent", "chaoslab agent", "--tools-host", ""),
            ("chaoslab agent", "chaoslab agent", "--proxy-host", ""),
            ("chaoslab tools", "chaoslab tools", "--host", ""),
            ("chaoslab manager", "chaoslab manager", "--bind-host", ""),
            ("chaoslab toxiproxy", "chaoslab toxiproxy", "--host", "--host/-host"),
            ("chaoslab model", "chaoslab model", "--host", ""),
        )
    ),
    *(
        Case(f"chaoslab lab {name}=http://{host}", f"{name}={f'http://{host}'[:60]} (command line) should be {ADDRESS}")
        for name in ("TOXIPROXY_URL", "MODEL_URL")
        for host in ("a..b", "c" * 64)
    ),
    env("MODEL_URL=http://two hosts:80\n", f"MODEL_URL=http://two hosts:80 (.env, line 1) should be {ADDRESS}"),
    Case(
        "chaoslab agent BASE_PORT={nobody}",
        "search does not say what it offers at http://127.0.0.1:{nobody}/tools (…): is `chaoslab tools` running?",
        starts=True,
    ),
    # --- the model ---
    Case(
        "chaoslab lab",
        f"GROQ_API_KEY (.env, line 1) is refused by {{refuses}} (401: Invalid API Key): {REFUSES}",
        {".env": f"GROQ_API_KEY={KEY}\nMODEL_URL={{refuses}}"},
        apart=True,
    ),
    Case(
        "chaoslab agent MODEL_URL={refuses}",
        f"GROQ_API_KEY (environment) is refused by {{refuses}} (401: Invalid API Key): {REFUSES}",
        environment={"GROQ_API_KEY": KEY},
    ),
    Case(
        f"chaoslab agent MODEL_URL={{forbids}} GROQ_API_KEY={KEY}",
        f"GROQ_API_KEY (command line) is refused by {{forbids}} (403: no access for ***): {REFUSES}",
    ),
    Case(
        "chaoslab lab MODEL_URL={refuses}", f"GROQ_API_KEY is needed by {{refuses}} (401: Invalid API Key): {REFUSES}"
    ),
    Case(
        f"chaoslab lab MODEL_URL={{knows}} GROQ_API_KEY={KEY} MODEL=lama-3.3",
        "MODEL=lama-3.3 (command line) is not known at {knows}: did you mean 'llama-3.3'?",
    ),
    Case(
        "chaoslab lab",
        f"MODEL_URL=http://127.0.0.1:{{free}} (.env, line 1) does not answer (…): {SERVER}",
        {".env": "MODEL_URL=http://127.0.0.1:{free}"},
    ),
    Case("chaoslab agent MODEL_URL={garbage}", f"MODEL_URL={{garbage}} (command line) does not answer (…): {SERVER}"),
    # --- Toxiproxy ---
    Case(
        "chaoslab lab TOXIPROXY_URL=http://127.0.0.1:{free}",
        "TOXIPROXY_URL=http://127.0.0.1:{free} is no Toxiproxy: …; leave it empty for the embedded one",
    ),
    Case(
        "chaoslab lab TOXIPROXY_URL={knows}",
        "TOXIPROXY_URL={knows} is no Toxiproxy: …; leave it empty for the embedded one",
    ),
    Case("chaoslab toxiproxy --config none.json", f"none.json cannot be read: No such file or directory; {PROXIES}"),
    Case(
        "chaoslab toxiproxy --config mine.json",
        "mine.json: Expected `array | null`, got `object`; it should be an array of proxies, as POST /populate takes "
        "it",
        {"mine.json": "{"},
    ),
    Case(
        "chaoslab toxiproxy --config mine.json",
        "mine.json: JSON is malformed: invalid character (byte 0); it should be an array of proxies, as POST /populate "
        "takes it",
        {"mine.json": "proxies"},
    ),
    Case(
        "chaoslab toxiproxy --config mine.json",
        f"mine.json cannot be read: Is a directory; {PROXIES}",
        {"mine.json": FOLDER},
    ),
    *(
        Case("chaoslab toxiproxy --config mine.json", f"mine.json {line}; {PROXIES}", {"mine.json": stands})
        for stands, line in (
            (PIPE, f"cannot be read: it is a named pipe, {IRREGULAR}"),
            (ZEROES, f"cannot be read: it is a device, {IRREGULAR}"),
            (ENDLESS, TOO_LARGE),
        )
    ),
    # --- ports ---
    *(
        Case(
            f"chaoslab lab BASE_PORT={{{name} base}}",
            f"port {{{name} port}} ({part}) is in use: {OTHER_PORT} {{{name} base}}",
            apart=True,
        )
        for name, part in [
            ("search", "search"),
            ("proxy", "search's proxy"),
            ("manager", "proxy manager"),
            ("toxiproxy", "toxiproxy"),
        ]
    ),
    Case(
        "chaoslab tools search --base-port {search base}",
        "search cannot listen on 127.0.0.1:{search port} (…): end what uses it, or choose …",
        apart=True,
    ),
    Case(
        "chaoslab manager",
        "the proxy manager cannot listen on 127.0.0.1:{manager port} (…): set BASE_PORT",
        environment={"BASE_PORT": "{manager base}"},
    ),
    Case(
        "chaoslab toxiproxy --port {toxiproxy port}",
        "nobody can listen on 127.0.0.1:{toxiproxy port}: address already in use; give another host or port",
    ),
    Case(
        "chaoslab model --port {toxiproxy port}",
        "model cannot listen on 127.0.0.1:{toxiproxy port} (…): end what uses it, or choose …",
        apart=True,
    ),
    Case(
        "chaoslab model --port 99999",
        "chaoslab model: argument --port: 99999 should be a whole number from 0 to 65535; see …",
    ),
    Case(
        "chaoslab tools --base-port abc",
        "chaoslab tools: argument --base-port: abc should be a whole number from 1024 to …",
    ),
    # --- which world, how many trials, in how many processes ---
    Case("chaoslab run --world vrtual", "WORLD=vrtual (command line) should be local or compose or virtual"),
    Case("chaoslab lab WORLD=docker", "WORLD=docker (command line) should be local or compose or virtual"),
    env("WORLD=real\n", "WORLD=real (.env, line 1) should be local or compose or virtual"),
    Case("chaoslab run --trials 0", "TRIALS=0 (command line) should be a whole number from 1 to 1000000"),
    Case("chaoslab run --trials 2.5", "TRIALS=2.5 (command line) should be a whole number from 1 to 1000000"),
    Case("chaoslab run --seed -1", "SEED=-1 (command line) should be a whole number from 0 to 9223372036854775807"),
    Case("chaoslab run --seed x", "SEED=x (command line) should be a whole number from 0 to 9223372036854775807"),
    Case("chaoslab run --jobs 0", "JOBS=0 (command line) should be a whole number from 1 to 256"),
    Case("chaoslab run --jobs many", "JOBS=many (command line) should be a whole number from 1 to 256"),
    Case("chaoslab run DEADLINE_S=0", f"DEADLINE_S=0 (command line) {SECONDS}"),
    Case("chaoslab run DEADLINE_S=soon", f"DEADLINE_S=soon (command line) {SECONDS}"),
    Case("chaoslab run --seed", "chaoslab run: argument --seed: expected one argument; see chaoslab run --help"),
    Case("chaoslab run --job 2 --world", "chaoslab run: argument --world: expected one argument; see …"),
    Case(
        "chaoslab run --world virtual --prompts none.json",
        f"PROMPTS=none.json cannot be read: No such file or directory; it should be a file with {LIKE}",
    ),
    Case("chaoslab run --world virtual", "logs: it should be a folder: rename it", {"logs": "mine"}),
    Case("chaoslab run --world virtual", "charts: it should be a folder: rename it", {"charts": "mine"}),
    Case("chaoslab run --world compose", "there is no docker-compose.yaml here: run this from the lab's folder"),
    # --- what stands where the lab writes ---
    Case("chaoslab lab", "logs: it should be a folder: rename it", {"logs": "mine"}),
    Case("chaoslab agent", "logs: it should be a folder: rename it", {"logs": "mine"}),
    Case("chaoslab lab", "state: it should be a folder: rename it", {"state": "mine"}),
    Case("chaoslab lab", "charts: it should be a folder: rename it", {"charts": "mine"}),
    Case("chaoslab lab", "state/state.db: it should be a file: delete it", {"state/state.db": FOLDER}),
    Case("chaoslab lab", "logs/latest: it should be a link to the newest run: rename it", {"logs/latest": FOLDER}),
    Case("chaoslab manager mine", "chaoslab manager: unrecognized arguments: mine; see chaoslab manager --help"),
    Case(
        "chaoslab agent --run mine",
        "logs/mine/run.json does not describe a run (…): delete logs/mine",
        {"logs/mine/run.json": "["},
    ),
    *(
        Case(
            "chaoslab agent --run mine",
            f"logs/mine/run.json does not describe a run ({why}): delete logs/mine",
            {"logs/mine/run.json": written},
        )
        for written, why in (
            ("[" * 100_000, "is nested deeper than 50 levels"),
            (PIPE, f"cannot be read: it is a named pipe, {IRREGULAR}"),
            (ZEROES, f"cannot be read: it is a device, {IRREGULAR}"),
            (FOLDER, "cannot be read: Is a directory"),
            ("[]", "name is missing"),
            ('{"name": "mine", "origin": 1e30, "now": "2026-06-01T09:00:00Z"}', "origin is not what it should be"),
            ('{"name": "mine", "origin": "1", "now": "2026-06-01T09:00:00Z"}', "origin is not what it should be"),
            ('{"name": "mine", "origin": 1, "now": "today"}', "now is not what it should be"),
        )
    ),
    Case("chaoslab agent --run never", "no run is called 'never' in logs"),
    Case(f"chaoslab agent --run {'A' * 5000}", f"no run is called '{'A' * 64}' in logs"),
    Case("chaoslab agent --run ../logs/mine", "no run is called '../logs/mine' in logs", {"logs/mine/run.json": "{}"}),
    # --- reading runs ---
    Case("chaoslab show never", f"no run with logs is called 'never': known are {EARLIER}, latest"),
    Case("chaoslab summary 20260101-12001", f"no run with logs is called '20260101-12001': did you mean '{EARLIER}'?"),
    Case("chaoslab charts mine", "'mine' is no run's folder: there are no logs in it", {"mine": FOLDER}),
    Case("charts.py never", f"no run with logs is called 'never': known are {EARLIER}, latest", apart=True),
    Case("chaoslab show mine", f"the logs of 'mine' tell of no run: {NO_RUN}", {"mine/info.log": "hello\n"}),
    Case("chaoslab summary mine", f"the logs of 'mine' tell of no run: {NO_RUN}", {"mine/info.log": b"\xff\0\n[]\n{}"}),
    Case("chaoslab charts mine", f"the logs of 'mine' tell of no run: {NO_RUN}", {"mine/info.log": ""}),
    Case("chaoslab summary mine", "no logs in mine", {"mine/info.log": FOLDER}),
    Case(f"chaoslab show {EARLIER} --prompt 999", "this run has no prompt 999: its prompts are 1 to 1"),
    Case(
        f"chaoslab show {EARLIER} --prompt one",
        "chaoslab show: argument --prompt: one should be a whole number from 1 to …",
    ),
    Case(
        f"charts.py {EARLIER} --out mine",
        "cannot draw into mine: File exists; --out should name a folder",
        {"mine": "x"},
        apart=True,
    ),
    Case(
        f"chaoslab charts {EARLIER} --out mine",
        "cannot draw into mine/success_rate.png: Is a directory; --out should name a folder",
        {"mine/success_rate.png": FOLDER},
    ),
    # --- commands ---
    Case(
        "chaoslab shw",
        "chaoslab: no command is called 'shw': did you mean 'show'? (chaoslab --all lists them)",
        apart=True,
    ),
    Case(
        "chaoslab label",
        "chaoslab: no command is called 'label': words decide nothing any more: state says, facts, effects or judge "
        "(chaoslab --all lists them)",
    ),
    Case("chaoslab", "chaoslab: the following arguments are required: COMMAND; see chaoslab --help"),
    Case(
        "chaoslab agent --frob", "chaoslab agent: unrecognized arguments: --frob; see chaoslab agent --help", apart=True
    ),
    Case("chaoslab tools wether", "no service is called 'wether': did you mean 'weather'?", apart=True),
    Case("chaoslab tools --now soon", "--now soon should be a moment like 2026-06-01T09:00:00Z"),
    Case("chaoslab manager --frob", "chaoslab manager: unrecognized arguments: --frob; see …", apart=True),
    # --- commands about scenarios ---
    Case(
        "chaoslab explore two/a.chaos.yaml --map map.html",
        "--map takes one scenario, and these are 2: choose one with -k",
        {**TWO, "two/a.chaos.yaml": f"{TWO['two/a.chaos.yaml']}variants: [{{name: x}}, {{name: y}}]\n"},
    ),
    Case(
        "chaoslab gate two --baseline b.json",
        "two scenarios are called 'refund', and a baseline has one of a name: rename one",
        {name: re.sub("name: .", "name: refund", text) for name, text in TWO.items()},
    ),
    Case("chaoslab gate two --baseline b.json --write --budget 1", "1 trials are too few for 2 scenarios", TWO),
    Case("chaoslab init --prompt hi", "--prompt is what your own agent is asked: name it with --agent"),
    Case("chaoslab init blocked/new", "blocked/new cannot be written: Not a directory", {"blocked": "x"}),
    Case(
        "chaoslab prove two/a.chaos.yaml --try key -k zzz", "no scenario of two/a.chaos.yaml has 'zzz' in its name", TWO
    ),
    Case("chaoslab shrink two/a.chaos.yaml -k zzz", "two/a.chaos.yaml has 0 such scenarios: choose one with -k", TWO),
    Case(
        "chaoslab shrink two/a.chaos.yaml --trial x",
        "--trial x should be a number from 1, or a key such as p1.r7",
        TWO,
    ),
    Case("chaoslab compare two/a.chaos.yaml --alpha 0", "…a number between 0 and 1, as in 0.05…", TWO),
    Case("chaoslab plan --risk often", "chaoslab plan: argument --risk: often should be a number from 0 to 1, or …"),
    Case("chaoslab plan --critical 0.5", "…--critical: 0.5 should be a target and a number, as in charge=0.9…"),
    # --- and others ---
    Case("chaoslab settings --json --markdown", "…--json and --markdown are two forms: leave one out…"),
    Case("chaoslab sweep TOXIC_PROB=0,2", f"TOXIC_PROB=2 (command line) {CHANCE}"),
    Case("chaoslab model", f"TOXIC_PROB=2 (environment) {CHANCE}", environment={"TOXIC_PROB": "2"}),
    Case("chaoslab otlp --to nowhere", "chaoslab otlp: argument --to: …"),
    Case("chaoslab otlp never --to http://127.0.0.1:9", "no run with logs is called 'never': known are …"),
    Case("chaoslab gateway --route a=http://127.0.0.1:9 --limits none", "--limits none cannot be read: No such file …"),
    Case("chaoslab mcp --session a.b -- true", "…--session 'a.b' should be a name of letters, digits, - and _…"),
    Case("chaoslab stop --all --lever blocked/x", "blocked: File exists", {"blocked": "x"}),
    Case(
        "chaoslab gateway --route a=http://127.0.0.1:9 --plan p.json",
        "…p.json: …share…",
        {"p.json": '{"limits": {"share": 2}}'},
    ),
    Case(
        "chaoslab from-openapi api.yaml --out blocked/new",
        "…blocked…",
        {
            "blocked": "x",
            "api.yaml": "openapi: 3.0.0\ninfo: {title: x, version: 1}\npaths: {/a: {get: {responses: {}}}}\n",
        },
    ),
    Case("chaoslab show .", "'.' is no run's folder: there are no logs in it"),
    Case("chaoslab show latest~1", "no logs yet in logs/: run make lab …", {"logs": FOLDER}),
]


def known(heard: Heard) -> Reply:
    """A server that knows one model."""
    if heard.path == "/openai/v1/models":
        return said({"object": "list", "data": [{"id": "llama-3.3"}]})
    return said({"error": {"message": "no such model", "code": "model_not_found"}}, 404)


@pytest.fixture(scope="module")
def there() -> Iterator[dict[str, str]]:
    """The surroundings of the cases: servers that refuse, tools at work, a free port, and ports that are held."""
    refusal = {"error": {"message": "Invalid API Key", "type": "invalid_request_error", "code": "invalid_api_key"}}
    answers: dict[str, Callable[[Heard], Reply]] = {
        "refuses": lambda _: said(refusal, 401),
        "forbids": lambda _: said({"error": {"message": f"no access for {KEY}"}}, 403),
        "knows": known,
        "garbage": lambda _: Reply(200, {"Content-Encoding": "gzip"}, b"nonsense"),
    }
    with contextlib.ExitStack() as stack:
        found = {name: stack.enter_context(site(answer)).url for name, answer in answers.items()}
        for holder in ("search", "search's proxy", "proxy manager", "toxiproxy"):
            base = free_base()
            port = Ports(base).list_all_ports()[holder]
            stack.enter_context(socket.create_server(("127.0.0.1", port)))
            name = holder.split()[-1]
            found |= {f"{name} base": str(base), f"{name} port": str(port)}
        base = free_base()
        command = (warm.python(), "-m", "chaoslab", "tools", "--base-port", str(base), "--lifeline")
        tools = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment())
        assert tools.stdout is not None
        assert tools.stdout.readline().startswith(b"ready")
        nobody = free_base()
        try:
            yield found | {"tools": str(base), "nobody": str(nobody), "free": str(Ports(nobody).toxiproxy_port)}
        finally:
            tools.communicate(timeout=HUNG_S)


def filled(text: str, there: Mapping[str, str]) -> str:
    return re.sub(r"\{([a-z ]+)\}", lambda found: there.get(found[1], found[0]), text)


def prepare(case: Case, folder: Path, there: Mapping[str, str]) -> list[str]:
    """Lays out the files beside an earlier run, and returns what is typed, the door first."""
    if "logs" not in case.files:
        earlier_run(folder / "logs")
    for name, text in case.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text is FOLDER:
            path.unlink(missing_ok=True)  # logs/latest
            path.mkdir()
        elif text == PIPE:
            os.mkfifo(path)
        elif text == ZEROES:
            path.symlink_to(ZEROES)
        elif text == ENDLESS:
            with path.open("wb") as file:
                file.truncate(17 * 1024**2)
        else:
            path.write_bytes(text if isinstance(text, bytes) else filled(text, there).encode())
    return filled(case.typed, there).split()


def earlier_run(logs: Path) -> None:
    run = Run("20260101-120000", logs / EARLIER, 0.0, "2026-06-01T09:00:00Z")
    with run.open_log("info") as info:
        info.write(run_started(settings=Settings().to_masked_dict(), now=run.now))
        info.write(events.PromptStarted(prompt_index=1, prompt="What is 6 times 7?"), trial="p1.r1")
    run.link_as_latest()


def tree(folder: Path) -> dict[str, bytes]:
    """Every file with its bytes, every link with where it leads, every folder."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        found[name] = (
            str(path.readlink()).encode() if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        )
    return found


@dataclass(frozen=True)
class Came:
    """The outcome of a case."""

    code: int
    out: str
    err: str
    before: Mapping[str, bytes]
    after: Mapping[str, bytes]


def as_process(case: Case, folder: Path, there: Mapping[str, str]) -> Came:
    door, *arguments = prepare(case, folder, there)
    program = [str(ROOT / door)] if door == "charts.py" else ["-m", door]
    before = tree(folder)
    done = execute([warm.python(), *program, *arguments], cwd=folder, env=environment() | dict(case.environment))
    return Came(done.returncode, done.stdout, done.stderr, before, tree(folder))


@pytest.fixture(scope="module")
def processes(there: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Case, Future[Came]]]:
    """The cases that are processes of their own, side by side, since each waits more than it works."""
    with ThreadPoolExecutor(4) as pool:
        yield {
            case: pool.submit(as_process, case, tmp_path_factory.mktemp("apart"), there) for case in CASES if case.apart
        }


def in_here(case: Case, folder: Path, there: Mapping[str, str], patch: pytest.MonkeyPatch, captured: Captured) -> Came:
    _, *arguments = prepare(case, folder, there)
    for name in Settings().to_environment():
        patch.delenv(name, raising=False)
    for name, text in case.environment.items():
        patch.setenv(name, filled(text, there))
    patch.chdir(folder)
    before = tree(folder)
    try:
        code = cli.main(arguments)
    except SystemExit as end:
        code = int(end.code or 0)
    words = captured.readouterr()
    return Came(code, words.out, words.err, before, tree(folder))


def test_the_table_is_long_enough() -> None:
    assert len(CASES) >= 40
    assert len(set(map(repr, CASES))) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=[f"{n}-{case.typed[:60]}" for n, case in enumerate(CASES)])
def test_bad_input_gets_one_line_and_touches_nothing(
    case: Case,
    there: dict[str, str],
    processes: dict[Case, Future[Came]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
) -> None:
    came = processes[case].result() if case.apart else in_here(case, tmp_path, there, monkeypatch, capsys)
    line = ".*".join(re.escape(part) for part in filled(case.line, there).split("…"))
    assert re.fullmatch(line + "\n", came.err), came.err  # a dot is no line's end: there is one line, and it is this
    assert (came.code, came.out) == (2, "")
    assert KEY not in came.err
    assert came.before.items() <= came.after.items()
    if not case.starts:
        made = {name for name in came.after if name not in came.before}
        assert made <= {"state", "state/state.db", "state/state.db-journal"}  # which hold nothing that a log does not


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "cannot be read: No such file or directory"),
        ("[{", "is not JSON: Expecting property name enclosed in double quotes: line 1 column 3 (char 2)"),
        ('[{"name": "Alien", "name": "Brazil"}]', 'has "name" twice in one object: line 1 column 20'),
        ('{"name": "Alien"}', "is not a JSON array"),
        ('[{"title": "Alien"}]', "has no entry with a `name` and an `original_name`"),
    ],
)
def test_films_that_cannot_be_read_are_said_and_the_bundled_ones_are_used(
    text: str | None, why: str, tmp_path: Path
) -> None:
    as_installed(tmp_path)
    films = tmp_path / "chaoslab" / "flask_tools" / "data" / "movies.json"
    films.unlink()
    if text is not None:
        films.write_text(text)
    command = [sys.executable, "-m", "chaoslab", "tools", "movies", "--base-port", str(free_base()), "--lifeline"]
    done = execute(command, cwd=tmp_path, env=environment() | {"PYTHONPATH": str(tmp_path)}, stdin=subprocess.DEVNULL)
    assert done.stderr == f"movies: movies.json: {why}; the bundled films are used\n"
    assert (done.returncode, done.stdout[:6]) == (0, "ready:")
