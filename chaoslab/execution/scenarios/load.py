"""Reads and checks scenarios. Nothing of the user's code is imported."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaoslab.analysis.assertion import Assertion, stated
from chaoslab.analysis.assertions.slo import Slo
from chaoslab.base import extras
from chaoslab.base.registry import did_you_mean
from chaoslab.config.topology import MODEL, SERVICES
from chaoslab.core.inject import inject
from chaoslab.core.levels import FAMILIES, USUAL, level
from chaoslab.core.plan import Injection
from chaoslab.execution.conversation import Conversation, Turn, turn, turns
from chaoslab.execution.scenarios import lab_agent
from chaoslab.execution.scenarios.lab_agent import LAB
from chaoslab.execution.scenarios.located import Located, ScenarioError, parse, read
from chaoslab.execution.scenarios.operations import words
from chaoslab.execution.scenarios.spaces import FIXED, DrawnFault, Space, drawn, space_of
from chaoslab.execution.scenarios.variants import expanded
from chaoslab.execution.scenarios.words import worded

if TYPE_CHECKING:
    from chaoslab.execution.drawn import Drawn
    from chaoslab.execution.scenarios.spec import FaultSpec, ScenarioSpec

BUDGET = "budget"
"""The name of the injection that holds a scenario to its budget."""
NOT_OF_A_COMMAND = {
    "tools": "its functions cannot be reached, so name the services that it asks in upstreams",
    "reads": "its functions cannot be reached, so name the services that it asks in upstreams",
    "services": "it asks real addresses, so give upstreams",
    "state": "it is compared with a run without faults, which real time has none of; state effects or facts",
    "turns": "it is started for one prompt and keeps nothing; give prompt",
    "user": "it is started for one prompt and keeps nothing; give prompt",
}
"""The keys that an agent which is a command cannot have, and why."""
CHOICES_MAX = 100
"""The most values of a parameter that trials choose from."""
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
    them. `slo`: the shares of calls that must be good, over all trials. `spaces`: the faults
    of which each trial draws a parameter, by the injection's name."""

    spec: ScenarioSpec
    injections: tuple[Injection, ...]
    expect: tuple[Assertion, ...]
    by_turn: Mapping[int, tuple[Assertion, ...]]
    prompt: str | Conversation
    file: str = ""
    folder: Path | None = None
    variant: str = ""
    objects: Mapping[str, Any] = field(default_factory=dict)
    slo: tuple[Slo, ...] = ()
    spaces: Mapping[str, DrawnFault] = field(default_factory=dict)

    @property
    def faults(self) -> tuple[Injection, ...]:
        """The injections but for the budget, which a trial may stay within."""
        return tuple(each for each in self.injections if each.name != BUDGET)

    def drawn(self, seed: int, number: int) -> Drawn:
        """The injections of the trial with this number, from 0, and the values drawn for it."""
        return drawn(self.injections, self.spaces, seed=seed, number=number)

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
    made: list[Scenario] = []
    wrong: list[str] = []
    for variant, one in expanded(located, wrong):
        try:
            spec = ScenarioSpec.model_validate(one.data)
        except ValidationError as error:
            wrong += [worded(one, each) for each in error.errors(include_url=False)]
            continue
        checks = _Checks(one, spec, folder, objects or {})
        made.append(checks.scenario(variant))
        wrong += checks.wrong
    if wrong:
        raise ScenarioErrors(list(dict.fromkeys(wrong)))
    return tuple(made)


class _Checks:
    """The checks of a file that depend on several values, or on faults and assertions."""

    def __init__(self, located: Located, spec: ScenarioSpec, folder: Path | None, objects: Mapping[str, Any]) -> None:
        self.located, self.spec, self.folder, self.objects = located, spec, folder, objects
        self.wrong: list[str] = []
        self.spaces: dict[str, DrawnFault] = {}

    def say(self, path: Sequence[str | int], text: str, *, of_key: bool = False) -> None:
        self.wrong.append(str(self.located.error(path, text, of_key=of_key)))

    def scenario(self, variant: str) -> Scenario:
        """The scenario; `wrong` then has all that is wrong with it."""
        spec = self.spec
        if spec.operations:
            self._operations()
        else:
            self._choose("agent", "fresh", "a function that is the agent, or one that makes it")
            self._choose("prompt", "turns", "one prompt, or the turns of a conversation")
        if spec.agent == LAB:
            lab_agent.check(spec, self.say)
        self._real_time()
        spec = self.spec
        self._known()
        key = "operations" if spec.operations else "turns"
        stated = [each.expect for each in spec.operations or spec.turns]
        by_turn = {
            n: asserted
            for n, each in enumerate(stated, 1)
            if (asserted := self._assertions(each, (key, n - 1, "expect")))
        }
        injections = self._injections(spec.faults)
        if spec.agent == LAB:
            lab_agent.check_faults(injections, self.say)
        return Scenario(
            spec,
            injections + self._level(spec.chaos_level) + self._budget(),
            self._assertions(spec.expect, ("expect",)),
            by_turn,
            self._prompt(),
            self.located.file,
            self.folder,
            variant,
            self.objects,
            tuple(Slo(each.share, each.within, each.tool) for each in spec.slo),
            self.spaces,
        )

    def _choose(self, one: str, other: str, meaning: str) -> None:
        given = [name for name in (one, other) if getattr(self.spec, name)]
        if len(given) == 2:
            self.say((other,), f"both {one} and {other} are given: give one of them, {meaning}", of_key=True)
        elif not given:
            self.say((), f"{one} or {other} is missing: {meaning}")

    def _operations(self) -> None:
        """Checks that there is no agent beside the operations, and that their tools are known."""
        spec = self.spec
        for key in ("agent", "fresh", "prompt", "turns", "user"):
            if getattr(spec, key):
                self.say((key,), f"operations are done without an agent: leave {key} out", of_key=True)
        names = [name_of(each, self.objects) for each in (*spec.tools, *spec.reads)]
        for n, each in enumerate(spec.operations):
            if each.tool not in names:
                self.say(("operations", n, "tool"), f"no tool is called '{each.tool:.60}': {_meant(each.tool, names)}")

    def _real_time(self) -> None:
        """Checks what only real time has: upstreams, and a command as the agent, which is a process of its own."""
        from chaoslab.execution.gateway import check_bases
        from chaoslab.execution.scenarios.spec import CommandSpec
        from chaoslab.seams.gateway.routes import routes

        spec = self.spec
        if isinstance(spec.agent, CommandSpec):
            if "world" not in spec.model_fields_set:
                self.spec = spec = spec.model_copy(update={"world": "local"})
            if spec.world != "local":
                self.say(("world",), "a command runs in real time: world should be local, or left out")
            for key in NOT_OF_A_COMMAND:
                if getattr(spec, key):
                    self.say((key,), f"a command is a process of its own: {NOT_OF_A_COMMAND[key]}", of_key=True)
        elif spec.upstreams and spec.world != "local":
            self.say(("upstreams",), "upstreams are services of real time: say world: local", of_key=True)
        for name, url in spec.upstreams.items():
            try:
                check_bases(routes([f"{name}={url}"]))
            except ValueError as error:
                self.say(("upstreams", name), str(error))

    def _known(self) -> None:
        spec = self.spec
        there = {**spec.services, **spec.upstreams}
        for n, name in enumerate(spec.models):
            if name not in there:
                self.say(("models", n), f"no service is called '{name}': {_meant(name, there)}")
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
        if self.spec.operations:
            return turns(*(turn(words(each), after_s=each.after) for each in self.spec.operations))
        made: list[Turn] = []
        for n, each in enumerate(self.spec.turns):
            try:
                made.append(turn(each.say or "", reply=each.reply, after_s=each.after))
            except ValueError as error:
                self.say(("turns", n), str(error))
        user = self._user()
        if user and self.spec.prompt and not made:
            made = [turn(self.spec.prompt)]
        try:
            return turns(*made, user=user, turns_max=self.spec.turns_max) if made else self.spec.prompt or ""
        except ValueError as error:
            self.say(("turns_max",) if str(error).startswith("turns_max") else ("turns", 0), str(error))
            return ""

    def _user(self) -> dict[str, str]:
        """The words of the scripted user, by pattern."""
        found: dict[str, str] = {}
        for n, each in enumerate(self.spec.user):
            try:
                turn(reply={each.when: each.say})
            except ValueError as error:
                self.say(("user", n, "when"), str(error))
                continue
            if each.when in found:
                self.say(("user", n, "when"), f"the pattern {each.when!r:.60} stands here twice: the first one counts")
            found.setdefault(each.when, each.say)
        if "turns_max" in self.spec.model_fields_set and not self.spec.user:
            self.say(("turns_max",), "turns_max bounds a scripted user, and there is no user", of_key=True)
        return found

    def _assertions(self, given: Sequence[Any], path: tuple[str | int, ...]) -> tuple[Assertion, ...]:
        found = []
        for n, each in enumerate(given):
            try:
                found.append(of_data(each))
            except (LookupError, ValueError, TypeError) as error:
                self.say((*path, n), str(error))
        return tuple(found)

    def _injections(self, given: Sequence[FaultSpec]) -> tuple[Injection, ...]:
        found: list[Injection] = []
        for n, each in enumerate(given):
            arguments = self._arguments(each, n)
            if arguments is None:
                continue
            spaces = {key: value for key, value in arguments.items() if isinstance(value, Space)}
            try:
                first = {key: space.ends[0] for key, space in spaces.items()}
                for key, value in [(key, value) for key, space in spaces.items() for value in space.ends]:
                    inject(each.fault, each.target, **{**arguments, **first, key: value})
                of = DrawnFault(each.fault, each.target, arguments)
                made, _ = of.made(None)
                if spaces:
                    self.spaces[made.name] = of
            except (LookupError, ValueError, TypeError) as error:
                keys = ["fault", "target", *each.arguments]
                named = max(
                    (key for key in keys if re.search(rf"\b{re.escape(key)}\b", str(error))), key=len, default=""
                )
                self.say(("faults", n, "fault" if isinstance(error, LookupError) else named), str(error))
                continue
            if any(made.name == other.name for other in found):
                self.say(("faults", n), f"'{made.name}' stands here twice: give one of them another name (name: …)")
            found.append(made)
        return tuple(found)

    def _arguments(self, given: FaultSpec, n: int) -> dict[str, Any] | None:
        """The fault's arguments, ranges and choices as spaces; None if one of them is wrong."""
        found = {}
        for key, value in given.arguments.items():
            try:
                space = space_of(value)
                if space is not None and key in FIXED:
                    raise ValueError(f"{key} is the same in all trials: give it one value")
                if space is not None and len(space.ends) > CHOICES_MAX:
                    raise ValueError(f"it has {len(space.ends)} choices: {CHOICES_MAX} at most")
            except ValueError as error:
                self.say(("faults", n, key), f"{key} of {given.fault}: {error}")
                return None
            found[key] = space or value
        return found

    def _budget(self) -> tuple[Injection, ...]:
        spec = self.spec
        if spec.budget is None:
            return ()
        limits = {name: value for name, value in spec.budget.limits.items() if value is not None}
        if not limits:
            self.say(("budget",), "a budget has tokens, dollars, calls or seconds, as in budget: {tokens: 20000}")
            return ()
        services = (*spec.services, *spec.upstreams)
        if not (spec.tools or spec.reads or services or spec.agent == LAB):
            self.say(("budget",), "there is nothing to spend it on: give tools, reads or services", of_key=True)
        spent = next((name for name in ("tokens", "dollars") if getattr(spec.budget, name)), "")
        if spent and not services and spec.agent != LAB:
            self.say(("budget", spent), f"only models use {spent}, and services has none", of_key=True)
        params: dict[str, Any] = {**limits, "mode": spec.budget.mode}
        return (inject("budget", "*", name=BUDGET, **params),)

    def _level(self, value: float) -> tuple[Injection, ...]:
        if not value:
            return ()
        spec, path = self.spec, ("chaos_level",)
        own = spec.agent == LAB
        models = {MODEL} if own else set(spec.models)
        names = [
            *(name_of(each, self.objects) for each in (*spec.tools, *spec.reads)),
            *(n for n in (*spec.services, *spec.upstreams, *(SERVICES if own else ())) if n not in models),
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
