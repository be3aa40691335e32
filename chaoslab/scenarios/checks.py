"""The checks of a scenario that depend on several of its values, or on what assertions and services there are."""

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaoslab.analysis.assertions import Assertion, ByFunction, stated
from chaoslab.analysis.assertions.calls import Slo
from chaoslab.analysis.metric import ByMetric
from chaoslab.base.registry import did_you_mean, snake
from chaoslab.core.conversation import Conversation, Turn, turn, turns
from chaoslab.core.limits import all_of
from chaoslab.scenarios._fault_checks import FaultChecks
from chaoslab.scenarios._operations import words
from chaoslab.scenarios.drawn_spec import Space, space_or_value
from chaoslab.scenarios.lab_agent import LAB, lab_agent
from chaoslab.scenarios.located import Located
from chaoslab.scenarios.scenario import Scenario, folders_of, name_of, names_of
from chaoslab.scenarios.sources import function_name

if TYPE_CHECKING:
    from chaoslab.scenarios.spec import ScenarioSpec

NOT_OF_A_COMMAND = {
    "tools": "its functions cannot be reached, so name the services that it asks in upstreams",
    "reads": "its functions cannot be reached, so name the services that it asks in upstreams",
    "services": "it asks real addresses, so give upstreams",
    "state": "it is compared with a run without faults, which real time has none of; state effects or facts",
    **dict.fromkeys(
        ("isolate", "elsewhere", "calls_max", "resume_with", "resumes", "model_calls_max", "now", "order", "memory_mb"),
        "that is for an agent in virtual time",
    ),
    "turns": "it is started for one prompt and keeps nothing; give prompt",
    "user": "it is started for one prompt and keeps nothing; give prompt",
}
"""The keys that an agent which is a command cannot have, and why."""


class Checks:
    """The checks of a file that depend on several values, or on faults and assertions."""

    def __init__(self, located: Located, spec: "ScenarioSpec", folder: Path | None, objects: Mapping[str, Any]) -> None:
        self.located, self.spec, self.folder, self.objects = located, spec, folder, objects
        self.wrong: list[str] = []

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
            lab_agent().check(spec, self.say)
        self._real_time()
        try:
            all_of(getattr(spec, "limits", None) or ())
        except (ValueError, LookupError) as error:
            self.say(("limits",), str(error.args[0]))
        spec = self.spec
        self._known()
        key = "operations" if spec.operations else "turns"
        stated = [each.expect for each in spec.operations or spec.turns]
        by_turn = {
            n: asserted
            for n, each in enumerate(stated, 1)
            if (asserted := self._assertions(each, (key, n - 1, "expect")))
        }
        faults = FaultChecks(spec, self.objects, self.say)
        injections = faults.injections(spec.faults)
        prompt = self._prompt()
        most = prompt.most if isinstance(prompt, Conversation) else 1
        names = self._names()
        if spec.agent == LAB:
            lab_agent().check_faults(injections, self.say, turns=most)
        else:
            faults.check_places(injections, names, turns=most)
        whole = injections + faults.level() + faults.budget()
        if len(injections) == len(spec.faults):
            faults.check_cascades(whole)
        return Scenario(
            spec, whole, self._assertions(spec.expect, ("expect",)), by_turn, prompt, self.located.file, self.folder,
            variant, self.objects, tuple(Slo(each.share, each.within, each.tool) for each in spec.slo),
            faults.spaces(self._waits()),
        )  # fmt: skip

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
        names = names_of(spec, self.objects)
        for n, each in enumerate(spec.operations):
            if each.tool not in names:
                self.say(("operations", n, "tool"), f"no tool is called '{each.tool:.60}': {_meant(each.tool, names)}")

    def _real_time(self) -> None:
        """Checks what only real time has: upstreams, and a command as the agent, which is a process of its own."""
        from chaoslab.execution.upstreams import check_bases
        from chaoslab.scenarios.spec import CommandSpec, ScenarioSpec
        from chaoslab.seams.gateway.routes import routes

        spec = self.spec
        if isinstance(spec.agent, CommandSpec):
            if "world" not in spec.model_fields_set:
                self.spec = spec = spec.model_copy(update={"world": "local"})
            if spec.world != "local":
                self.say(("world",), "a command runs in real time: world should be local, or left out")
            for key in NOT_OF_A_COMMAND:
                if getattr(spec, key) != ScenarioSpec.model_fields[key].get_default(call_default_factory=True):
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

    def _names(self) -> list[str] | None:
        """The names of all that a fault may hit; None if only an import would tell them. Tells the names that their
        modules do not have."""
        spec, known = self.spec, True
        for path, dotted in (
            (("agent",), spec.agent if spec.agent != LAB else None),
            (("fresh",), spec.fresh),
            (("resume_with",), spec.resume_with),
            (("state",), spec.state),
            (("judge",), spec.judge_named),
            *((("services", host), dotted) for host, dotted in spec.services.items()),
        ):
            if isinstance(dotted, str):
                self._read(path, dotted)
        names: list[str] = [*spec.services, *spec.upstreams]
        for key, place, given, dotted in spec.functions:
            name = self._read((key, place), dotted)
            known = known and (name is not None or bool(given))
            names.append(given or name or "")
        return names if known else None

    def _read(self, path: tuple[str | int, ...], dotted: str) -> str | None:
        if dotted in self.objects:
            return name_of(dotted, self.objects)
        try:
            return function_name(dotted, folders_of(self.folder))
        except (LookupError, SyntaxError) as error:
            said = error.args[0] if isinstance(error, LookupError) else f"SyntaxError: {error}"
            self.say(path, f"{dotted} cannot be imported: {said}")
            return None

    def _prompt(self) -> str | Conversation:
        if self.spec.operations:
            return turns(*(turn(words(each), after_s=_first(each.after)) for each in self.spec.operations))
        made: list[Turn] = []
        for n, each in enumerate(self.spec.turns):
            try:
                made.append(turn(each.say or "", reply=each.reply, after_s=_first(each.after)))
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

    def _waits(self) -> dict[int, Space]:
        """The times before turns that each trial draws, by the turn's number."""
        given = [each.after for each in self.spec.operations or self.spec.turns]
        return {n: space for n, after in enumerate(given, 1) if isinstance(space := space_or_value(after), Space)}

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


def of_data(given: Any) -> Assertion:
    """The assertion of a scenario's entry: "no_duplicate_effects", {max_calls: 5}, or {max_calls: {calls: 5}}; in
    Python also a function, or a metric with `measure(test_case)`. Raises LookupError, ValueError, TypeError: it is
    none."""
    if isinstance(given, str):
        return stated(given, {})
    if isinstance(given, Assertion):
        return given
    if isinstance(given, type) and issubclass(given, Assertion):
        name = snake(given.__name__)
        raise TypeError(f"{name} stands without its parameters: write {name}({'…' if fields(given) else ''})")
    if inspect.iscoroutinefunction(given):
        raise TypeError(f"{given.__qualname__} is async, and an assertion is a plain function")
    if isinstance(given, type) and callable(getattr(given, "measure", None)):
        raise TypeError(f"{given.__name__} is a class: give an object of it, as in {given.__name__}(threshold=0.7)")
    if callable(getattr(given, "measure", None)):
        return ByMetric(given)
    if callable(given):
        return ByFunction(given)
    if not isinstance(given, Mapping) or len(given) != 1:
        raise ValueError("an assertion is a name, or one name with its parameters, as in max_calls: 5")
    ((name, params),) = given.items()
    return stated(str(name), params)


def _first(after: Any) -> float:
    """The time before a turn, in seconds; the first one if each trial draws its own."""
    found = space_or_value(after)
    return float(found.ends[0] if isinstance(found, Space) else found)


def _meant(name: str, known: Any) -> str:
    return did_you_mean(name, known) if known else "there are none"
