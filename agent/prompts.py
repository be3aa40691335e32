"""`agent/prompts.json`, or the user's own file: the prompts, and the facts and effects of a right answer."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from chaoslab.agent.config import describe_first_error
from chaoslab.base.files import Unreadable, read_json
from chaoslab.base.registry import suggest_name
from chaoslab.config.settings import SettingError
from chaoslab.core.conversation import USER_TURNS_MAX, Conversation, Turn, turn, turns

FILE = Path(__file__).resolve().with_name("prompts.json")
LENGTH_MAX = 20_000
# int() refuses a text of thousands of digits, and no reply has a million items.
_INDEX = re.compile("[0-9]{1,6}")
LIKE = 'a list like [{"prompt": "What is 6 times 7?"}]'


class Lookup(BaseModel):
    """A fact from the service itself, asked around every proxy when the prompt begins: the value at `path` of its
    reply."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    tool: str
    arguments: dict[str, Any] = {}
    path: str


class PromptTurn(BaseModel):
    """A turn of a conversation: the user's words, or `reply`, words by a pattern in the agent's last answer. `after_s`:
    the seconds before it."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    say: str = ""
    reply: dict[str, str] = {}
    after_s: float = 0.0


class Prompt(BaseModel):
    """One prompt, or the `turns` of a conversation in its place, after which a scripted `user` goes on answering by
    pattern, for `turns_max` turns at most. A fact is a text, a list of texts of which one must show, or a `Lookup`. An
    effect describes something that must have happened.

    In facts and effects, `{today}`, `{tomorrow}` … stand for the days of the run (`{day+3}` for the third day from its
    first).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    prompt: Annotated[str, Field(min_length=1, max_length=LENGTH_MAX)] = ""
    turns: list[str | PromptTurn] = []
    user: dict[str, str] = {}
    turns_max: int = USER_TURNS_MAX
    facts: list[str | list[str] | Lookup] = []
    effects: list[dict[str, Any]] = []

    @model_validator(mode="after")
    def _check_content(self) -> Self:
        if bool(self.prompt) == bool(self.turns):
            raise ValueError("it should have a prompt, or the turns of a conversation")
        if self.turns or self.user:
            self.conversation  # noqa: B018 - raises if it is none
        return self

    @property
    def conversation(self) -> Conversation | None:
        """The conversation; None for one prompt."""
        if not self.turns and not self.user:
            return None
        turn_list = [
            item if isinstance(item, str) else turn(item.say, reply=item.reply, after_s=item.after_s)
            for item in self.turns or [self.prompt]
        ]
        return turns(*turn_list, user=self.user or None, turns_max=self.turns_max)

    @property
    def text(self) -> str:
        """The user's words; a turn a line or more."""
        return str(self.conversation or self.prompt)

    @classmethod
    def build(cls, content: str | Conversation, **statements: Any) -> "Prompt":
        """The prompt that asks this. `statements`: facts and effects."""
        if isinstance(content, str):
            return cls(prompt=content, **statements)
        user = {"user": dict(content.user.reply), "turns_max": content.turns_max} if content.user else {}
        return cls.model_validate(
            {"turns": [_turn_to_json(conversation_turn) for conversation_turn in content.turns], **user, **statements}
        )

    def with_conversation(self, conversation: Conversation) -> "Prompt":
        """The same prompt with another conversation."""
        # The fields that were set tell if the prompt states anything, so they alone go on.
        return Prompt.build(conversation, **self.model_dump(include={"facts", "effects"}, exclude_unset=True))

    @property
    def has_facts_or_effects(self) -> bool:
        return bool(self.model_fields_set & {"facts", "effects"})


def load_prompts(path: Path = FILE) -> list[Prompt]:
    """The prompts of that file, in its order. Raises SettingError: one line on the error, with the prompt's number."""
    try:
        data = read_json(path)
    except Unreadable as error:
        raise SettingError(f"PROMPTS={path} {error}; it should be a file with {LIKE}") from None
    if not isinstance(data, list) or not data:
        raise SettingError(f"PROMPTS={path} should hold {LIKE}")
    prompts = []
    for number, entry in enumerate(data, 1):
        if not isinstance(entry, str | dict):
            raise SettingError(f"PROMPTS={path}, prompt {number} should be a text, or an object with a `prompt`")
        try:
            prompts.append(Prompt.model_validate({"prompt": entry} if isinstance(entry, str) else entry))
        except ValidationError as error:
            wrong = describe_first_error(error, Prompt, Lookup, PromptTurn).removeprefix("the file: ")
            raise SettingError(f"PROMPTS={path}, prompt {number}: {wrong}") from None
        if not prompts[-1].text.strip():
            raise SettingError(f"PROMPTS={path}, prompt {number}: prompt: it is empty")
    return prompts


def _turn_to_json(conversation_turn: Turn) -> Any:
    """The turn as the file has it."""
    after = {"after_s": conversation_turn.after_s} if conversation_turn.after_s else {}
    if conversation_turn.reply:
        return {"reply": dict(conversation_turn.reply), **after}
    return {"say": conversation_turn.say, **after} if after else conversation_turn.say


def prompts_to_json(prompts: Sequence[Prompt]) -> list[Any]:
    """The prompts as JSON, in the form of a file. A log keeps this form, and `Prompt` accepts it."""
    # A default that is written out would count as something that the prompt states.
    return [prompt.model_dump(mode="json", exclude_unset=True) for prompt in prompts]


def validate_facts_and_effects(
    prompts: Sequence[Prompt], path: Path, *, tools: Mapping[str, type[BaseModel]], effects: Sequence[str]
) -> None:
    """Checks the stated facts and effects against the tools' arguments and the effects that the services offer. Raises
    SettingError: a fact or an effect that could never show."""
    for number, prompt in enumerate(prompts, 1):
        at_prompt = f"PROMPTS={path}, prompt {number}"
        for fact in (fact for fact in prompt.facts if isinstance(fact, Lookup)):
            if fact.tool not in tools:
                raise SettingError(
                    f"{at_prompt}: facts: no tool is called '{fact.tool}': {suggest_name(fact.tool, tools)}"
                )
            try:
                tools[fact.tool].model_validate(fact.arguments)
            except ValidationError as error:
                raise SettingError(
                    f"{at_prompt}: facts: {fact.tool}: {describe_first_error(error, tools[fact.tool])}"
                ) from None
        for effect in prompt.effects:
            name = str(effect.get("effect", ""))
            if name not in effects:
                raise SettingError(f"{at_prompt}: effects: no effect is called '{name}': {suggest_name(name, effects)}")


def fill_dates(value: Any, now: datetime) -> Any:
    """The value with `{today}`, `{tomorrow}` and `{day+N}` as dates (2026-06-01)."""
    if isinstance(value, str) and "{" in value:
        days = {"{today}": 0, "{tomorrow}": 1} | {f"{{day+{n}}}": n for n in range(8)}
        for word, n in days.items():
            value = value.replace(word, (now + timedelta(days=n)).date().isoformat())
        return value
    if isinstance(value, list):
        return [fill_dates(entry, now) for entry in value]
    if isinstance(value, dict):
        return {key: fill_dates(entry, now) for key, entry in value.items()}
    return value


def get_value_at_path(value: Any, path: str) -> Any:
    """The value at a path such as `items.0.summary` of a reply; None if there is none."""
    for key in path.split("."):
        if isinstance(value, list) and _INDEX.fullmatch(key) and int(key) < len(value):
            value = value[int(key)]
        elif isinstance(value, dict):
            value = value.get(key)
        else:
            return None
    return value
