"""Prompts from a file: the shipped ones, the user's own, and what a right answer must show."""

import importlib
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from chaoslab.agent.prompts import (
    Lookup,
    Prompt,
    fill_dates,
    get_value_at_path,
    load_prompts,
    prompts_to_json,
    validate_facts_and_effects,
)
from chaoslab.agent.tools import build_schema
from chaoslab.config.settings import SettingError
from chaoslab.config.topology import SERVICES as TABLE
from chaoslab.core.conversation import turn, turns

NOW = datetime.fromisoformat("2026-06-01T09:00:00+00:00")


def written(folder: Path, data: Any) -> Path:
    path = folder / "prompts.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return path


def test_every_shipped_prompt_says_what_a_right_answer_shows() -> None:
    assert [prompt.prompt for prompt in load_prompts() if not prompt.has_facts_or_effects] == []


def test_a_users_file_may_hold_only_prompts(tmp_path: Path) -> None:
    one, two = load_prompts(written(tmp_path, [{"prompt": "Hello?"}, "And you?"]))
    assert (one.prompt, two.prompt) == ("Hello?", "And you?")
    assert not one.has_facts_or_effects
    assert not two.has_facts_or_effects


def test_a_stated_prompt_may_state_that_nothing_shall_happen(tmp_path: Path) -> None:
    (prompt,) = load_prompts(written(tmp_path, [{"prompt": "Hello?", "effects": []}]))
    assert prompt.has_facts_or_effects


def test_a_fact_is_a_text_some_texts_or_a_lookup(tmp_path: Path) -> None:
    lookup = {"tool": "current_weather", "arguments": {"city": "Lima"}, "path": "main.temp"}
    (prompt,) = load_prompts(
        written(tmp_path, [{"prompt": "How warm?", "facts": ["21", ["21", "twenty-one"], lookup]}])
    )
    assert prompt.facts == ["21", ["21", "twenty-one"], Lookup.model_validate(lookup)]


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ("[", "is not JSON: Expecting value: line 1 column 2"),
        ("[" * 100_000, "is nested deeper than 50 levels"),
        ([7], ", prompt 1 should be a text, or an object with a `prompt`"),
        ([{"prompt": "Hello?"}, None], ", prompt 2 should be a text"),
        ([], "should hold a list like"),
        ({"prompt": "Hello?"}, "should hold a list like"),
        ([{"prompt": "Hello?"}, {"promt": "Hi"}], ", prompt 2: promt is not known: did you mean 'prompt'?"),
        ([{"prompt": "Hello?", "fact": []}], ", prompt 1: fact is not known: did you mean 'facts'?"),
        (["   "], ", prompt 1: prompt: it is empty"),
        ([{"facts": ["6"]}], ", prompt 1: it should have a prompt, or the turns of a conversation"),
        ([{"prompt": "a", "turns": ["b"]}], ", prompt 1: it should have a prompt, or the turns of a conversation"),
        ([{"turns": [{"reply": {"a": "b"}}]}], ", prompt 1: the first turn has no answer to reply to"),
        (
            [{"turns": ["a", {"say": "b", "reply": {"a": "b"}}]}],
            ", prompt 1: a turn has either the user's words",
        ),
        ([{"turns": ["a", {"sai": "b"}]}], "sai is not known: did you mean 'say'?"),
        ([{"prompt": "a", "user": {"(": "b"}}], ", prompt 1: the pattern '(' cannot be read"),
        ([{"prompt": "x" * 20_001}], ", prompt 1: prompt: String should have at most 20000 characters"),
    ],
)
def test_a_slip_is_said_in_one_line_with_its_place(tmp_path: Path, data: Any, complaint: str) -> None:
    path = written(tmp_path, data)
    with pytest.raises(SettingError) as error:
        load_prompts(path)
    assert str(error.value).startswith(f"PROMPTS={path}")
    assert complaint in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_in_another_encoding_is_said(tmp_path: Path) -> None:
    path = tmp_path / "prompts.json"
    path.write_bytes('["Grüß Gott"]'.encode("latin-1"))
    with pytest.raises(SettingError, match=r"is not UTF-8 text \(byte 4\); it should be a file with a list like"):
        load_prompts(path)


SERVICES = [importlib.import_module(f"chaoslab.flask_tools.{name}").SERVICE for name in TABLE]
TOOLS = [tool for service in SERVICES for tool in service.tools]


def check(prompts: list[Prompt]) -> None:
    effects = [tool.effect for tool in TOOLS if tool.effect]
    validate_facts_and_effects(
        prompts, Path("mine.json"), tools={tool.name: build_schema(tool) for tool in TOOLS}, effects=effects
    )


def test_what_the_shipped_prompts_state_can_be_asked_and_done() -> None:
    check(load_prompts())


@pytest.mark.parametrize(
    ("stated", "complaint"),
    [
        ({"facts": [{"tool": "current_wether", "path": "main.temp"}]}, "did you mean 'current_weather'?"),
        (
            {"facts": [{"tool": "current_weather", "path": "main.temp"}]},
            "facts: current_weather: city: Field required",
        ),
        (
            {"facts": [{"tool": "current_weather", "arguments": {"town": "Oslo"}, "path": "x"}]},
            "facts: current_weather: town is not known: known are city",
        ),
        ({"effects": [{"effect": "message_send"}]}, "no effect is called 'message_send': did you mean 'message_sent'?"),
        ({"effects": [{"to": "Ana"}]}, "no effect is called '': known are event_created, event_deleted, message_sent"),
    ],
)
def test_what_no_service_offers_cannot_be_stated(stated: dict[str, Any], complaint: str) -> None:
    with pytest.raises(SettingError) as error:
        check([Prompt(prompt="Hello?"), Prompt.model_validate({"prompt": "And?", **stated})])
    assert str(error.value).startswith("PROMPTS=mine.json, prompt 2: ")
    assert str(error.value).endswith(complaint)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="cannot be read: No such file"):
        load_prompts(tmp_path / "none.json")


def test_days_are_those_of_the_run() -> None:
    given = {"start": "{tomorrow}T15:00", "in": ["{today}", "{day+3}"], "n": 3}
    assert fill_dates(given, NOW) == {"start": "2026-06-02T15:00", "in": ["2026-06-01", "2026-06-04"], "n": 3}


def test_a_path_leads_into_a_reply_or_to_nothing() -> None:
    reply = {"items": [{"summary": "Dentist"}]}
    assert get_value_at_path(reply, "items.0.summary") == "Dentist"
    assert get_value_at_path(reply, "items.1.summary") is None
    assert get_value_at_path(reply, "items.²") is None
    assert get_value_at_path(reply, f"items.{'9' * 5000}") is None
    assert get_value_at_path(reply, "items.summary") is None
    assert get_value_at_path(reply, "items.0.summary.length") is None


def test_a_conversation_is_kept_as_data_and_read_again() -> None:
    asked = turns("Hello?", turn(reply={"(?i)hi": "How are you?"}, after_s=60.0), user={"fine": "Bye."}, turns_max=5)
    prompt = Prompt.build(asked, facts=["fine"])
    (again,) = (Prompt.model_validate(each) for each in json.loads(json.dumps(prompts_to_json([prompt]))))
    assert (again.conversation, again.text, again.facts, again.has_facts_or_effects) == (
        asked,
        str(asked),
        ["fine"],
        True,
    )
    assert Prompt(prompt="Hello?").conversation is None
    assert Prompt.build("Hello?") == Prompt(prompt="Hello?")
