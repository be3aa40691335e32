"""The checks of a scenario that depend on several of its values, or on what assertions and services there are."""

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaoslab.analysis.assertions import Assertion, ByFunction, build_assertion
from chaoslab.analysis.assertions.calls import Slo
from chaoslab.analysis.metric import ByMetric
from chaoslab.base.registry import did_you_mean, snake
from chaoslab.core.conversation import Conversation, Turn, turn, turns
from chaoslab.core.limits import read_limits
from chaoslab.core.machine import TARGETS
from chaoslab.scenarios._fault_checks import FaultChecks
from chaoslab.scenarios._operations import describe_operation
from chaoslab.scenarios.drawn_spec import Space, space_or_value
from chaoslab.scenarios.lab_agent import LAB, lab_agent
from chaoslab.scenarios.located import Located
from chaoslab.scenarios.scenario import Scenario, collect_names, module_folders, name_of
from chaoslab.scenarios.sources import find_function_name

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

    def say(self, path: Sequence[str | int], text: str) -> None:
        self.wrong.append(str(self.located.error(path, text)))

    def scenario(self, variant: str) -> Scenario:
        """The scenario; `wrong` then has all that is wrong with it."""
        spec = self.spec
        if spec.operations:
            self._operations()
        else:
            self._check_choice("agent", "fresh", "a function that is the agent, or one that makes it")
            self._check_choice("prompt", "turns", "one prompt, or the turns of a conversation")
        if spec.agent == LAB:
            lab_agent().check(spec, self.say)
        self._check_real_time()
        try:
            read_limits(getattr(spec, "limits", None) or ())
        except (ValueError, LookupError) as error:
            self.say(("limits",), str(error.args[0]))
        spec = self.spec
        self._known()
        key = "operations" if spec.operations else "turns"
        expectations = [entry.expect for entry in spec.operations or spec.turns]
        by_turn = {
            n: asserted
            for n, entry in enumerate(expectations, 1)
            if (asserted := self._build_assertions(entry, (key, n - 1, "expect")))
        }
        faults = FaultChecks(spec, self.objects, self.say)
        injections = faults.injections(spec.faults)
        prompt = self._build_prompt()
        turns_max = prompt.most if isinstance(prompt, Conversation) else 1
        names = self._names()
        if spec.agent == LAB:
            lab_agent().check_faults(injections, self.say, turns=turns_max)
        else:
            faults.check_places(injections, names, turns=turns_max)
        all_injections = injections + faults.level() + faults.budget()
        if len(injections) == len(spec.faults):
            faults.check_cascades(all_injections)
        return Scenario(
            spec,
            all_injections,
            self._build_assertions(spec.expect, ("expect",)),
            by_turn,
            prompt,
            self.located.file,
            self.folder,
            variant,
            self.objects,
            tuple(Slo(entry.share, entry.within, entry.tool) for entry in spec.slo),
            faults.spaces(self._waits()),
        )

    def _check_choice(self, first: str, second: str, meaning: str) -> None:
        keys_given = [name for name in (first, second) if getattr(self.spec, name)]
        if len(keys_given) == 2:
            self.say((second,), f"both {first} and {second} are given: give one of them, {meaning}")
        elif not keys_given:
            self.say((), f"{first} or {second} is missing: {meaning}")

    def _operations(self) -> None:
        """Checks that there is no agent beside the operations, and that their tools are known."""
        spec = self.spec
        for key in ("agent", "fresh", "prompt", "turns", "user"):
            if getattr(spec, key):
                self.say((key,), f"operations are done without an agent: leave {key} out")
        names = collect_names(spec, self.objects)
        for n, operation in enumerate(spec.operations):
            if operation.tool not in names:
                self.say(
                    ("operations", n, "tool"),
                    f"no tool is called '{operation.tool:.60}': {_suggest(operation.tool, names)}",
                )

    def _check_real_time(self) -> None:
        """Checks what only real time has: upstreams, and a command as the agent, which is a process of its own."""
        from chaoslab.execution.upstreams import check_bases
        from chaoslab.scenarios.spec import CommandSpec, ScenarioSpec
        from chaoslab.seams.gateway.routes import parse_routes

        spec = self.spec
        if isinstance(spec.agent, CommandSpec):
            if "world" not in spec.model_fields_set:
                self.spec = spec = spec.model_copy(update={"world": "local"})
            if spec.world != "local":
                self.say(("world",), "a command runs in real time: world should be local, or left out")
            for key in NOT_OF_A_COMMAND:
                if getattr(spec, key) != ScenarioSpec.model_fields[key].get_default(call_default_factory=True):
                    self.say((key,), f"a command is a process of its own: {NOT_OF_A_COMMAND[key]}")
        elif spec.upstreams and spec.world != "local":
            self.say(("upstreams",), "upstreams are services of real time: say world: local")
        for name, url in spec.upstreams.items():
            try:
                check_bases(parse_routes([f"{name}={url}"]))
            except ValueError as error:
                self.say(("upstreams", name), str(error))

    def _known(self) -> None:
        spec = self.spec
        all_services = {**spec.services, **spec.upstreams}
        for n, name in enumerate(spec.models):
            if name not in all_services:
                self.say(("models", n), f"no service is called '{name}': {_suggest(name, all_services)}")
        for host in spec.services:
            if not re.fullmatch(r"[a-z0-9_][a-z0-9_.-]*(:[0-9]{1,5})?", host):
                self.say(("services", host), f"'{host[:60]}' is no host name in lower case, as in shop.test")
        if spec.state and spec.effects is not None:
            self.say(("state",), "a state is compared with a run without faults, which stated effects replace")

    def _names(self) -> list[str] | None:
        """The names of all that a fault may hit; None if only an import would tell them. Tells the names that their
        modules do not have."""
        spec, all_known = self.spec, True
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
        names: list[str] = [
            *spec.services,
            *spec.upstreams,
            *(TARGETS if spec.files and spec.world != "local" else ()),
        ]
        for key, index, given_name, dotted in spec.functions:
            name = self._read((key, index), dotted)
            all_known = all_known and (name is not None or bool(given_name))
            names.append(given_name or name or "")
        return names if all_known else None

    def _read(self, path: tuple[str | int, ...], dotted: str) -> str | None:
        if dotted in self.objects:
            return name_of(dotted, self.objects)
        try:
            return find_function_name(dotted, module_folders(self.folder))
        except (LookupError, SyntaxError) as error:
            message = error.args[0] if isinstance(error, LookupError) else f"SyntaxError: {error}"
            self.say(path, f"{dotted} cannot be imported: {message}")
            return None

    def _build_prompt(self) -> str | Conversation:
        if self.spec.operations:
            return turns(
                *(turn(describe_operation(entry), after_s=_first_wait(entry.after)) for entry in self.spec.operations)
            )
        turn_list: list[Turn] = []
        for n, entry in enumerate(self.spec.turns):
            try:
                turn_list.append(turn(entry.say or "", reply=entry.reply, after_s=_first_wait(entry.after)))
            except ValueError as error:
                self.say(("turns", n), str(error))
        user = self._user()
        if user and self.spec.prompt and not turn_list:
            turn_list = [turn(self.spec.prompt)]
        try:
            return turns(*turn_list, user=user, turns_max=self.spec.turns_max) if turn_list else self.spec.prompt or ""
        except ValueError as error:
            self.say(("turns_max",) if str(error).startswith("turns_max") else ("turns", 0), str(error))
            return ""

    def _waits(self) -> dict[int, Space]:
        """The times before turns that each trial draws, by the turn's number."""
        wait_values = [entry.after for entry in self.spec.operations or self.spec.turns]
        return {n: space for n, after in enumerate(wait_values, 1) if isinstance(space := space_or_value(after), Space)}

    def _user(self) -> dict[str, str]:
        """The words of the scripted user, by pattern."""
        replies: dict[str, str] = {}
        for n, answer in enumerate(self.spec.user):
            try:
                turn(reply={answer.when: answer.say})
            except ValueError as error:
                self.say(("user", n, "when"), str(error))
                continue
            if answer.when in replies:
                self.say(
                    ("user", n, "when"), f"the pattern {answer.when!r:.60} stands here twice: the first one counts"
                )
            replies.setdefault(answer.when, answer.say)
        if "turns_max" in self.spec.model_fields_set and not self.spec.user:
            self.say(("turns_max",), "turns_max bounds a scripted user, and there is no user")
        return replies

    def _build_assertions(self, entries: Sequence[Any], path: tuple[str | int, ...]) -> tuple[Assertion, ...]:
        assertions = []
        for n, entry in enumerate(entries):
            try:
                assertions.append(parse_assertion(entry))
            except (LookupError, ValueError, TypeError) as error:
                self.say((*path, n), str(error))
        return tuple(assertions)


def parse_assertion(entry: Any) -> Assertion:
    """The assertion of a scenario's entry: "no_duplicate_effects", {max_calls: 5}, or {max_calls: {calls: 5}}; in
    Python also a function, or a metric with `measure(test_case)`. Raises LookupError, ValueError, TypeError: it is
    none."""
    if isinstance(entry, str):
        return build_assertion(entry, {})
    if isinstance(entry, Assertion):
        return entry
    if isinstance(entry, type) and issubclass(entry, Assertion):
        name = snake(entry.__name__)
        raise TypeError(f"{name} stands without its parameters: write {name}({'…' if fields(entry) else ''})")
    if inspect.iscoroutinefunction(entry):
        raise TypeError(f"{entry.__qualname__} is async, and an assertion is a plain function")
    if isinstance(entry, type) and callable(getattr(entry, "measure", None)):
        raise TypeError(f"{entry.__name__} is a class: give an object of it, as in {entry.__name__}(threshold=0.7)")
    if callable(getattr(entry, "measure", None)):
        return ByMetric(entry)
    if callable(entry):
        return ByFunction(entry)
    if not isinstance(entry, Mapping) or len(entry) != 1:
        raise ValueError("an assertion is a name, or one name with its parameters, as in max_calls: 5")
    ((name, params),) = entry.items()
    return build_assertion(str(name), params)


def _first_wait(after: Any) -> float:
    """The time before a turn, in seconds; the first one if each trial draws its own."""
    wait = space_or_value(after)
    return float(wait.ends[0] if isinstance(wait, Space) else wait)


def _suggest(name: str, names_known: Any) -> str:
    return did_you_mean(name, names_known) if names_known else "there are none"
