"""A limit that a message names is itself allowed, and the next value beyond it is not."""

import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, get_type_hints

import pytest
import yaml

import chaoslab as lab
from chaoslab.analysis.assertions import build_assertion, load_assertion
from chaoslab.base.parsers import parse_host
from chaoslab.base.registry import list_plugins
from chaoslab.core.fault import load_fault
from chaoslab.lab.sweep import build_grid
from chaoslab.scenarios.load import load_file_scenarios
from chaoslab.scenarios.located import parse_located_data
from tests.model.test_formats import CHAT, HELLO, asked

YEARS_S = 315_360_000
HOST = ".".join(["a" * 63] * 4)
SCENARIO = "name: a\nagent: shop:answer\nprompt: x\n"


def agent(_: str) -> None: ...


def inject_with(fault: str, **params: Any) -> None:
    lab.inject(fault, "refund", **params)


def ask_model(**more: Any) -> None:
    status, _, body = asked(lab.offline_model(), CHAT, {**HELLO[CHAT], **more})
    if status != 200:
        raise ValueError(body.decode())


def write_scenario(folder: Path, more: str) -> None:
    (folder / "a.chaos.yaml").write_text(SCENARIO + more)
    load_file_scenarios(folder / "a.chaos.yaml")


LIMITS: dict[str, tuple[Callable[[Any, Path], object], int, int, str]] = {
    "turns": (lambda n, _: lab.turns(*["go on"] * n), 1, 1000, "a conversation has 1 to 1000 turns"),
    "turns_max": (lambda n, _: lab.turns("x", user={"a": "b"}, turns_max=n), 2, 1000, "a whole number from 1 to 1000"),
    "after_s": (lambda n, _: lab.turn("x", after_s=n), 0, YEARS_S, f"a number from 0 to {YEARS_S}"),
    "level": (lambda n, _: lab.level(n, "refund"), 0, 10, "a number from 0 to 10"),
    "token_s": (lambda n, _: lab.offline_model(token_s=n), 0, YEARS_S, f"from 0 to {YEARS_S}"),
    "timeout_s": (lambda n, _: lab.run(agent, "x", timeout_s=n), 1, YEARS_S, f"above 0, up to {YEARS_S} (ten years)"),
    "calls_max": (lambda n, _: lab.run(agent, "x", calls_max=n), 1, 2**63 - 1, f"from 1 to {2**63 - 1}"),
    "persistence": (
        lambda n, _: inject_with("latency", persistence=f"for_s {n}"), 1, YEARS_S, "'burst 3', 'for_s 2.5'",
    ),
    "seconds of a fault": (lambda n, _: inject_with("latency", delay_s=n), 0, YEARS_S, f"from 0 to {YEARS_S}"),
    "a number of a fault": (lambda n, _: inject_with("cut", after_events=n), 0, 10**15, f"from 0 to {10**15}"),
    "a condition": (
        lambda n, _: inject_with("latency", when='a == "' + "x" * (n - 7) + '"'), 7, 500, "after 500 characters",
    ),
    "digits": (lambda n, _: inject_with("latency", when=f"a > {'9' * n}"), 1, 50, "a number of at most 50 characters"),
    "the cells of a sweep": (
        lambda n, _: build_grid(["TOXIC_PROB=" + ",".join(f"{i / 1000}" for i in range(n))]),
        2, 400, "401 cells; 400 at most",
    ),
    "a host": (lambda n, _: parse_host(HOST[:n]), 1, 253, "a host's name or an address"),
    "stop": (lambda n, _: ask_model(stop=["."] * n), 1, 4, "maximum length 4, but got an array with length 5"),
    "n": (lambda n, _: ask_model(n=n), 1, 128, "Expected a value <= 128, but got 129"),
    "variants": (
        lambda n, folder: write_scenario(folder, f"variants: {{seed: {[*range(n)]}}}"),
        1, 1000, "1001 variants: 1000 at most",
    ),
    "the depth of YAML": (lambda n, _: parse_located_data("[" * n + "]" * n, "a"), 1, 40, "nested more than 40 deep"),
    "the depth of JSON": (
        lambda n, _: parse_located_data("[" * n + "]" * n, "a", suffix=".json"), 1, 40, "nested more than 40 deep",
    ),
    "the values of YAML": (
        lambda n, _: parse_located_data(f"[{'1,' * (n - 1)}]", "a"), 1, 50_000, "more than 50000 values",
    ),
    "the values of JSON": (
        lambda n, _: parse_located_data(f"[1{',1' * (n - 2)}]", "a", suffix=".json"), 2, 50_000,
        "more than 50000 values",
    ),
    "a scenario's size": (
        lambda n, folder: write_scenario(folder, "#" * (n * 1024 - len(SCENARIO))), 1, 1024, "larger than 1024 KiB"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_is_allowed_and_one_more_is_not(name: str, tmp_path: Path) -> None:
    make, low, high, said = LIMITS[name]
    for fits in (low, high):
        make(fits, tmp_path)
    with pytest.raises(Exception, match=re.escape(said)):
        make(high + 1, tmp_path)


def assert_with(name: str, **params: Any) -> None:
    example = yaml.safe_load(load_assertion(name).example)
    build_assertion(name, {**example, **params} if isinstance(example, dict) else params)


@pytest.mark.parametrize(
    ("names", "load", "make", "least"),
    [
        (list_plugins("faults"), load_fault, inject_with, 25),
        (list_plugins("analysis.assertions"), load_assertion, assert_with, 11),
    ],
    ids=["faults", "assertions"],
)
def test_the_bounds_of_a_parameter_are_allowed_and_nothing_beyond_them(
    names: Sequence[str], load: Callable[[str], Any], make: Callable[..., None], least: int
) -> None:
    tried = set()
    for name in names:
        kind = load(name)
        for parameter, ends in getattr(kind, "bounds", {}).items():
            number = get_type_hints(kind)[parameter]
            for bound, beyond in zip(ends, (-math.inf, math.inf), strict=True):
                make(name, **{parameter: number(bound)})
                step = bound + math.copysign(1, beyond) if number is int else math.nextafter(bound, beyond)
                with pytest.raises(ValueError, match=f"{parameter} of {name} is "):
                    make(name, **{parameter: number(step)})
            tried.add((name, parameter))
    assert len(tried) >= least
