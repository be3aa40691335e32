"""Reads and checks scenarios. Nothing of the user's code is imported."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaoslab.analysis.assertion import Assertion, stated
from chaoslab.base import extras
from chaoslab.base.registry import did_you_mean
from chaoslab.core.inject import inject
from chaoslab.core.levels import FAMILIES, USUAL, level
from chaoslab.core.plan import Injection
from chaoslab.execution.conversation import Conversation, turn, turns
from chaoslab.execution.scenarios.located import Located, ScenarioError, parse, read

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    from chaoslab.execution.scenarios.spec import FaultSpec, ScenarioSpec

SHOWN_MAX = 20
"""The most errors of a file that are told."""


class ScenarioErrors(ScenarioError):
    """All that is wrong with a scenario: `lines`, one each."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = tuple(lines[:SHOWN_MAX])
        super().__init__("\n".join(self.lines))


@dataclass(frozen=True)
class Scenario:
    """A checked scenario. `folder`: where its modules are sought first. `by_turn`: the assertions about one turn, by
    its number. `variant`: its name, if it is one. `objects`: those that Python gave, by the name that stands for
    them."""

    spec: ScenarioSpec
    injections: tuple[Injection, ...]
    expect: tuple[Assertion, ...]
    by_turn: Mapping[int, tuple[Assertion, ...]]
    prompt: str | Conversation
    file: str = ""
    folder: Path | None = None
    variant: str = ""
    objects: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.spec.name}, {self.variant}" if self.variant else self.spec.name

    @property
    def functions(self) -> list[str]:
        """The names of its tools and reads in plans and logs."""
        return [name_of(each, self.objects) for each in (*self.spec.tools, *self.spec.reads)]


def load(path: Path, *, changed: Sequence[str] = ()) -> tuple[Scenario, ...]:
    """The scenarios of a file: one, or one for each variant. `changed`: values in place of the file's, as in
    "trials=50".

    Raises:
        ScenarioErrors: it cannot be read, or something in it is wrong.
    """
    try:
        return checked(_changed(read(path), changed), folder=path.parent)
    except ScenarioErrors:
        raise
    except ScenarioError as error:
        raise ScenarioErrors([str(error)]) from None


def _changed(located: Located, changed: Sequence[str]) -> Located:
    if not changed or not isinstance(located.data, dict):
        return located
    data, marks, keys = dict(located.data), dict(located.marks), dict(located.keys)
    for each in changed:
        name, equals, text = each.partition("=")
        if not equals or not name:
            raise ScenarioError(f"--set {each[:60]} should be a key and a value, as in trials=50")
        data[name] = parse(text or "''", f"--set {name}").data
        for held in (marks, keys):
            for path in [path for path in held if path[:1] == (name,)]:
                del held[path]
    return Located(located.file, data, marks, keys)


def checked(
    located: Located, *, folder: Path | None = None, objects: Mapping[str, Any] | None = None
) -> tuple[Scenario, ...]:
    """The scenarios of a file's data. `objects`: those that Python gave, by the name that stands for them.

    Raises:
        ScenarioErrors: something is wrong.
    """
    extras.check("a scenario", "scenarios")
    from pydantic import ValidationError

    from chaoslab.execution.scenarios.spec import ScenarioSpec

    if not isinstance(located.data, dict):
        what = "a list" if isinstance(located.data, list) else "one value"
        raise ScenarioErrors(
            [str(located.error((), f"a scenario is a mapping with name, agent, … and this is {what}"))]
        )
    if located.data.get("chaoslab", 1) != 1:
        said = f"chaoslab is {located.data['chaoslab']!r:.40}: this version reads scenarios of version 1"
        raise ScenarioErrors([str(located.error(("chaoslab",), said))])
    try:
        spec = ScenarioSpec.model_validate(located.data)
    except ValidationError as error:
        found = [_worded(located, each) for each in error.errors(include_url=False)]
        raise ScenarioErrors(list(dict.fromkeys(found))) from None
    return _Checks(located, spec, folder, objects or {}).scenarios()


class _Checks:
    """The checks of a file that depend on several values, or on faults and assertions."""

    def __init__(self, located: Located, spec: ScenarioSpec, folder: Path | None, objects: Mapping[str, Any]) -> None:
        self.located, self.spec, self.folder, self.objects = located, spec, folder, objects
        self.wrong: list[str] = []

    def say(self, path: Sequence[str | int], text: str, *, of_key: bool = False) -> None:
        self.wrong.append(str(self.located.error(path, text, of_key=of_key)))

    def scenarios(self) -> tuple[Scenario, ...]:
        spec = self.spec
        self._choose("agent", "fresh", "a function that is the agent, or one that makes it")
        self._choose("prompt", "turns", "one prompt, or the turns of a conversation")
        self._known()
        prompt = self._prompt()
        expect = self._assertions(spec.expect, ("expect",))
        by_turn = {
            n: asserted
            for n, each in enumerate(spec.turns, 1)
            if (asserted := self._assertions(each.expect, ("turns", n - 1, "expect")))
        }
        injections = self._injections(spec.faults, ("faults",)) + self._level(spec.chaos_level, ("chaos_level",))
        made = []
        seen: set[str] = set()
        for n, variant in enumerate(spec.variants):
            if variant.name in seen:
                self.say(("variants", n, "name"), f"a second variant is called '{variant.name}'")
            seen.add(variant.name)
            where = ("variants", n)
            faults = spec.faults if variant.faults is None else variant.faults
            path = ("faults",) if variant.faults is None else (*where, "faults")
            stated_level = spec.chaos_level if variant.chaos_level is None else variant.chaos_level
            if variant.prompt is not None and spec.turns:
                self.say((*where, "prompt"), "this scenario has turns, and no prompt to replace")
            changed = {"seed": variant.seed, "prompt": variant.prompt}
            own = spec.model_copy(update={key: value for key, value in changed.items() if value is not None})
            theirs = self._injections(faults, path) + self._level(stated_level, (*where, "chaos_level"))
            made.append(
                Scenario(
                    own,
                    theirs,
                    expect,
                    by_turn,
                    own.prompt or prompt,
                    self.located.file,
                    self.folder,
                    variant.name,
                    self.objects,
                )
            )
        if self.wrong:
            raise ScenarioErrors(list(dict.fromkeys(self.wrong)))
        only = Scenario(spec, injections, expect, by_turn, prompt, self.located.file, self.folder, objects=self.objects)
        return tuple(made) or (only,)

    def _choose(self, one: str, other: str, meaning: str) -> None:
        given = [name for name in (one, other) if getattr(self.spec, name)]
        if len(given) == 2:
            self.say((other,), f"both {one} and {other} are given: give one of them, {meaning}", of_key=True)
        elif not given:
            self.say((), f"{one} or {other} is missing: {meaning}")

    def _known(self) -> None:
        spec = self.spec
        for n, name in enumerate(spec.models):
            if name not in spec.services:
                self.say(("models", n), f"no service is called '{name}': {_meant(name, spec.services)}")
        for host in spec.services:
            if not re.fullmatch(r"[a-z0-9_][a-z0-9_.-]*(:[0-9]{1,5})?", host):
                self.say(
                    ("services", host), f"'{host[:60]}' is no host name in lower case, as in shop.test", of_key=True
                )
        if spec.state and spec.effects is not None:
            self.say(
                ("state",), "a state is compared with a run without faults, which stated effects replace", of_key=True
            )

    def _prompt(self) -> str | Conversation:
        made = []
        for n, each in enumerate(self.spec.turns):
            try:
                made.append(turn(each.say or "", reply=each.reply, after_s=each.after))
            except ValueError as error:
                self.say(("turns", n), str(error))
        try:
            return turns(*made) if made else self.spec.prompt or ""
        except ValueError as error:
            self.say(("turns", 0), str(error))
            return ""

    def _assertions(self, given: Sequence[Any], path: tuple[str | int, ...]) -> tuple[Assertion, ...]:
        found = []
        for n, each in enumerate(given):
            try:
                found.append(of_data(each))
            except (LookupError, ValueError, TypeError) as error:
                self.say((*path, n), str(error))
        return tuple(found)

    def _injections(self, given: Sequence[FaultSpec], path: tuple[str | int, ...]) -> tuple[Injection, ...]:
        found: list[Injection] = []
        for n, each in enumerate(given):
            try:
                made = inject(each.fault, each.target, **each.arguments)
            except (LookupError, ValueError, TypeError) as error:
                keys = ["fault", "target", *each.arguments]
                named = max(
                    (key for key in keys if re.search(rf"\b{re.escape(key)}\b", str(error))), key=len, default=""
                )
                self.say((*path, n, "fault" if isinstance(error, LookupError) else named), str(error))
                continue
            if any(made.name == other.name for other in found):
                self.say((*path, n), f"'{made.name}' stands here twice: give one of them another name (name: …)")
            found.append(made)
        return tuple(found)

    def _level(self, value: float, path: tuple[str | int, ...]) -> tuple[Injection, ...]:
        if not value:
            return ()
        spec = self.spec
        models = set(spec.models)
        names = [
            *(name_of(each, self.objects) for each in (*spec.tools, *spec.reads)),
            *(n for n in spec.services if n not in models),
        ]
        usable = USUAL if not models else FAMILIES
        families: list[str] = list(spec.families or usable)
        of_model = [family for family in families if family in ("model", "stream", "context")]
        if of_model and not models:
            self.say(path, f"{of_model[0]} faults are of models, and models names none", of_key=True)
            return ()
        usual = [family for family in families if family not in of_model]
        found: tuple[Injection, ...] = ()
        if usual and names:
            found += level(value, names, families=usual, of_bytes=not (spec.tools or spec.reads))
        if of_model:
            found += level(value, sorted(models), families=of_model, of_bytes=True)
        if not found:
            self.say(path, "there is nothing to hit: give tools, reads or services", of_key=True)
        return found


def of_data(given: Any) -> Assertion:
    """The assertion of a scenario's entry: "no_duplicate_effects", {max_calls: 5}, or {max_calls: {calls: 5}}.

    Raises:
        LookupError, ValueError, TypeError: it is none.
    """
    if isinstance(given, str):
        return stated(given, {})
    if isinstance(given, Assertion):
        return given
    if not isinstance(given, Mapping) or len(given) != 1:
        raise ValueError("an assertion is a name, or one name with its parameters, as in max_calls: 5")
    ((name, params),) = given.items()
    return stated(str(name), params)


def name_of(dotted: str, objects: Mapping[str, Any]) -> str:
    """The name of a function in plans and logs: the last one of module:name, or its own if Python gave it."""
    if dotted in objects:
        from chaoslab.execution import agent_run

        return agent_run.name_of(objects[dotted])
    return dotted.rpartition(":")[2].rpartition(".")[2]


def _meant(name: str, known: Any) -> str:
    return did_you_mean(name, known) if known else "there are none"


# Words for what pydantic finds.

_SHOULD = {
    "string_type": "a text", "string_unicode": "a text of whole characters",
    "int_type": "a whole number", "float_type": "a number", "bool_type": "true or false",
    "list_type": "a list", "dict_type": "a mapping", "model_type": "a mapping", "model_attributes_type": "a mapping",
    "int_from_float": "a whole number", "finite_number": "a finite number",
}  # fmt: skip


def _worded(located: Located, error: ErrorDetails) -> str:
    """One line: the place, the wrong value, and what would be right."""
    path = tuple(_path(located.data, error["loc"]))
    kind, context, value = error["type"], error.get("ctx", {}), error.get("input")
    name = next((str(part) for part in reversed(path) if isinstance(part, str)), "this")
    if kind == "extra_forbidden":
        known = _fields(path)
        return str(
            located.error(path, f"'{path[-1]}' is not known here: {did_you_mean(str(path[-1]), known)}", of_key=True)
        )
    if kind == "missing":
        return str(located.error(path[:-1], f"{error['loc'][-1]} is missing"))
    return str(located.error(path, f"{name} is {_short(value)}: it should be {_right(kind, context, error)}"))


def _right(kind: str, context: Mapping[str, Any], error: ErrorDetails) -> str:
    match kind:
        case "literal_error":
            return str(context.get("expected", "")).replace(" or ", ", ").replace("'", "").replace(", ", " or ")
        case "string_pattern_mismatch":
            return "module:name, as in shop.agent:answer" if ":" in str(context.get("pattern")) else "a short name"
        case "greater_than_equal":
            return f"{context['ge']:.15g} or more"
        case "less_than_equal":
            return f"{context['le']:.15g} or less"
        case "too_long":
            return f"{context['max_length']} entries at most"
        case "too_short" | "string_too_short":
            return "not empty"
        case "string_too_long":
            return f"{context['max_length']} characters at most"
        case "value_error":
            return str(context.get("error", error["msg"]))
        case _:
            return _SHOULD.get(kind, f"something else ({error['msg']})")


def _path(data: Any, loc: Sequence[str | int]) -> Iterator[str | int]:
    """The parts of a location that are keys and indices of the data; names of types are left out."""
    for n, part in enumerate(loc):
        if isinstance(data, dict) and (part in data or n == len(loc) - 1):
            yield part
            data = data.get(part)
        elif isinstance(data, list) and isinstance(part, int) and part < len(data):
            yield part
            data = data[part]


def _fields(path: Sequence[str | int]) -> list[str]:
    from chaoslab.execution.scenarios import spec

    models: dict[str, type[spec.Strict]] = {"turns": spec.TurnSpec, "variants": spec.VariantSpec}
    inner = [part for part in path[:-1] if isinstance(part, str)]
    model: type[spec.Strict] = models.get(inner[-1], spec.ScenarioSpec) if inner else spec.ScenarioSpec
    return list(model.model_fields)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
