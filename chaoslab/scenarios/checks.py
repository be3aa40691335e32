"""The checks of a scenario that depend on several of its values, or on what assertions and services there are."""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaoslab.analysis.assertions import Assertion, FunctionAssertion, build_assertion
from chaoslab.analysis.assertions.calls import Slo
from chaoslab.base.registry import suggest_name, to_snake_case
from chaoslab.core.conversation import Conversation, Turn, turn, turns
from chaoslab.core.limits import parse_limits
from chaoslab.core.machine import TARGETS
from chaoslab.scenarios._fault_checks import FaultChecks
from chaoslab.scenarios._operations import describe_operation
from chaoslab.scenarios.drawn_spec import Space, parse_space_or_value
from chaoslab.scenarios.lab_agent import LAB, load_lab_agent
from chaoslab.scenarios.located import Located
from chaoslab.scenarios.scenario import Scenario, collect_function_names, get_logged_name, list_module_folders
from chaoslab.scenarios.sources import find_function_name, make_signature_stub

if TYPE_CHECKING:
    from chaoslab.scenarios.spec import ScenarioSpec

NOT_OF_A_COMMAND = {
    "tools": "its functions cannot be reached, so name the services that it asks in upstreams",
    "reads": "its functions cannot be reached, so name the services that it asks in upstreams",
    "services": "it asks real addresses, so give upstreams",
    "state": "it is compared with a run without faults, which real time has none of; state effects or facts",
    **dict.fromkeys(
        ("isolate", "elsewhere", "calls_max", "model_calls_max", "now", "order", "memory_mb"),
        "that is for an agent in virtual time",
    ),
    "turns": "it is started for one prompt and keeps nothing; give prompt",
    "user": "it is started for one prompt and keeps nothing; give prompt",
}
"""The keys that an agent which is a command cannot have, and why."""


class ScenarioChecks:
    """The checks of a file that depend on several values, or on faults and assertions."""

    def __init__(self, located: Located, spec: "ScenarioSpec", folder: Path | None, objects: Mapping[str, Any]) -> None:
        self.located, self.spec, self.folder, self.objects = located, spec, folder, objects
        self.wrong: list[str] = []

    def add_error(self, path: Sequence[str | int], text: str) -> None:
        self.wrong.append(str(self.located.make_error(path, text)))

    def check_and_build_scenario(self, variant: str) -> Scenario:
        """The scenario; `wrong` then has all that is wrong with it."""
        spec = self.spec
        if spec.operations:
            self._check_operations()
        else:
            self._check_exactly_one("agent", "fresh", "a function that is the agent, or one that makes it")
            self._check_exactly_one("prompt", "turns", "one prompt, or the turns of a conversation")
        if spec.agent == LAB:
            load_lab_agent().check_scenario(spec, self.add_error)
        self._check_real_time_keys()
        try:
            parse_limits(getattr(spec, "limits", None) or ())
        except (ValueError, LookupError) as error:
            self.add_error(("limits",), str(error.args[0]))
        spec = self.spec
        if "resumes" in spec.model_fields_set and spec.resumes and spec.resume_with is None:
            self.add_error(("resumes",), "resumes is how often resume_with goes on: give resume_with, or leave it out")
        self._check_services_and_state()
        key = "operations" if spec.operations else "turns"
        expectations = [entry.expect for entry in spec.operations or spec.turns]
        by_turn = {
            n: asserted
            for n, entry in enumerate(expectations, 1)
            if (asserted := self._build_assertions(entry, (key, n - 1, "expect")))
        }
        faults = FaultChecks(spec, self.objects, self.add_error)
        injections = faults.build_injections(spec.faults)
        prompt = self._build_prompt()
        turns_max = prompt.turn_count_max if isinstance(prompt, Conversation) else 1
        names = self._collect_target_names()
        if spec.agent == LAB:
            load_lab_agent().check_faults(injections, self.add_error, turns=turns_max)
        else:
            faults.check_targets(injections, names, turns=turns_max)
        all_injections = injections + faults.build_level_injections() + faults.build_budget_injections()
        if len(injections) == len(spec.faults):
            faults.check_after_triggers(all_injections)
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
            faults.collect_value_spaces(self._collect_wait_spaces()),
        )

    def _check_exactly_one(self, first: str, second: str, meaning: str) -> None:
        keys_given = [name for name in (first, second) if getattr(self.spec, name)]
        if len(keys_given) == 2:
            self.add_error((second,), f"both {first} and {second} are given: give one of them, {meaning}")
        elif not keys_given:
            self.add_error((), f"{first} or {second} is missing: {meaning}")

    def _check_operations(self) -> None:
        """Checks that there is no agent beside the operations, and that their tools are known."""
        spec = self.spec
        for key in ("agent", "fresh", "prompt", "turns", "user"):
            if getattr(spec, key):
                self.add_error((key,), f"operations are done without an agent: leave {key} out")
        names = collect_function_names(spec, self.objects)
        for n, operation in enumerate(spec.operations):
            if operation.tool not in names:
                self.add_error(
                    ("operations", n, "tool"),
                    f"no tool is called '{operation.tool:.60}': {_suggest_name(operation.tool, names)}",
                )

    def _check_real_time_keys(self) -> None:
        """Checks what only real time has: upstreams, and a command as the agent, which is a process of its own."""
        from chaoslab.execution.upstreams import check_no_doubled_paths
        from chaoslab.scenarios.spec import CommandSpec, ResumeSpec, ScenarioSpec
        from chaoslab.seams.gateway.routes import parse_routes

        spec = self.spec
        if isinstance(spec.agent, CommandSpec):
            if "world" not in spec.model_fields_set:
                self.spec = spec = spec.model_copy(update={"world": "local"})
            if spec.world != "local":
                self.add_error(("world",), "a command runs in real time: world should be local, or left out")
            for key in NOT_OF_A_COMMAND:
                if getattr(spec, key) != ScenarioSpec.model_fields[key].get_default(call_default_factory=True):
                    self.add_error((key,), f"a command is a process of its own: {NOT_OF_A_COMMAND[key]}")
            if isinstance(spec.resume_with, str):
                self.add_error(
                    ("resume_with",), "a command goes on as a command: give resume_with {command: [program, …]}"
                )
        elif isinstance(spec.resume_with, ResumeSpec):
            self.add_error(("resume_with",), "the agent is no command, so what goes on is module:name of a callable")
        elif spec.upstreams and spec.world != "local":
            self.add_error(("upstreams",), "upstreams are services of real time: say world: local")
        for name, url in spec.upstreams.items():
            try:
                check_no_doubled_paths(parse_routes([f"{name}={url}"]))
            except ValueError as error:
                self.add_error(("upstreams", name), str(error))

    def _check_services_and_state(self) -> None:
        spec = self.spec
        all_services = {**spec.services, **spec.upstreams}
        for n, name in enumerate(spec.models):
            if name not in all_services:
                self.add_error(("models", n), f"no service is called '{name}': {_suggest_name(name, all_services)}")
        for host in spec.services:
            if not re.fullmatch(r"[a-z0-9_][a-z0-9_.-]*(:[0-9]{1,5})?", host):
                self.add_error(("services", host), f"'{host[:60]}' is no host name in lower case, as in shop.test")
        if spec.state and spec.effects is not None:
            self.add_error(("state",), "a state is compared with a run without faults, which stated effects replace")

    def _collect_target_names(self) -> list[str] | None:
        """The names of all that a fault may hit; None if only an import would tell them. Tells the names that their
        modules do not have."""
        from chaoslab.execution.agents.functions import check_agent, check_application, fresh

        spec, all_known = self.spec, True
        entries: tuple[tuple[tuple[str, ...], object, Callable[[Any], object] | None], ...] = (
            (("agent",), spec.agent if spec.agent != LAB else None, check_agent),
            (("fresh",), spec.fresh, fresh),
            (("resume_with",), spec.resume_with, partial(check_agent, where="resume_with")),
            (("state",), spec.state, None),
            (("judge",), spec.judge_function_name, None),
            *(
                (("services", host), dotted, partial(check_application, name=host))
                for host, dotted in spec.services.items()
            ),
        )
        for path, dotted, check in entries:
            if isinstance(dotted, str):
                self._resolve_function_name(path, dotted, check)
        names: list[str] = [
            *spec.services,
            *spec.upstreams,
            *(TARGETS if spec.files and spec.world != "local" else ()),
        ]
        for key, index, given_name, dotted in spec.function_entries:
            name = self._resolve_function_name((key, index), dotted)
            all_known = all_known and (name is not None or bool(given_name))
            names.append(given_name or name or "")
        return names if all_known else None

    def _resolve_function_name(
        self, path: tuple[str | int, ...], dotted: str, check: Callable[[Any], object] | None = None
    ) -> str | None:
        """The name of a function in plans and logs, None if only an import would tell. Tells of one that is not there,
        and, by `check`, of one that cannot be called in its place."""
        if dotted in self.objects:
            return get_logged_name(dotted, self.objects)
        folders = list_module_folders(self.folder)
        try:
            if check is not None and (stand_in := make_signature_stub(dotted, folders)) is not None:
                check(stand_in)
            return find_function_name(dotted, folders)
        except TypeError as error:
            self.add_error(path, str(error))
            return None
        except (LookupError, SyntaxError) as error:
            message = error.args[0] if isinstance(error, LookupError) else f"SyntaxError: {error}"
            self.add_error(path, f"{dotted} cannot be imported: {message}")
            return None

    def _build_prompt(self) -> str | Conversation:
        if self.spec.operations:
            return turns(
                *(
                    turn(describe_operation(entry), after_s=_get_representative_wait_s(entry.after))
                    for entry in self.spec.operations
                )
            )
        turn_list: list[Turn] = []
        for n, entry in enumerate(self.spec.turns):
            try:
                turn_list.append(
                    turn(entry.say or "", reply=entry.reply, after_s=_get_representative_wait_s(entry.after))
                )
            except ValueError as error:
                self.add_error(("turns", n), str(error))
        user = self._build_user_replies()
        if user and self.spec.prompt and not turn_list:
            turn_list = [turn(self.spec.prompt)]
        try:
            return turns(*turn_list, user=user, turns_max=self.spec.turns_max) if turn_list else self.spec.prompt or ""
        except ValueError as error:
            self.add_error(("turns_max",) if str(error).startswith("turns_max") else ("turns", 0), str(error))
            return ""

    def _collect_wait_spaces(self) -> dict[int, Space]:
        """The times before turns that each trial draws, by the turn's number."""
        wait_values = [entry.after for entry in self.spec.operations or self.spec.turns]
        return {
            n: space
            for n, after in enumerate(wait_values, 1)
            if isinstance(space := parse_space_or_value(after), Space)
        }

    def _build_user_replies(self) -> dict[str, str]:
        """The words of the scripted user, by pattern."""
        replies: dict[str, str] = {}
        for n, answer in enumerate(self.spec.user):
            try:
                turn(reply={answer.when: answer.say})
            except ValueError as error:
                self.add_error(("user", n, "when"), str(error))
                continue
            if answer.when in replies:
                self.add_error(
                    ("user", n, "when"), f"the pattern {answer.when!r:.60} stands here twice: the first one counts"
                )
            replies.setdefault(answer.when, answer.say)
        if "turns_max" in self.spec.model_fields_set and not self.spec.user:
            self.add_error(("turns_max",), "turns_max bounds a scripted user, and there is no user")
        return replies

    def _build_assertions(self, entries: Sequence[Any], path: tuple[str | int, ...]) -> tuple[Assertion, ...]:
        assertions = []
        for n, entry in enumerate(entries):
            try:
                assertions.append(parse_assertion(entry))
            except (LookupError, ValueError, TypeError) as error:
                self.add_error((*path, n), str(error))
        return tuple(assertions)


def parse_assertion(entry: Any) -> Assertion:
    """The assertion of a scenario's entry: "no_duplicate_effects", {max_calls: 5}, or {max_calls: {calls: 5}}; in
    Python also a function. Raises LookupError, ValueError, TypeError: it is none."""
    if isinstance(entry, str):
        return build_assertion(entry, {})
    if isinstance(entry, Assertion):
        return entry
    if isinstance(entry, type) and issubclass(entry, Assertion):
        name = to_snake_case(entry.__name__)
        raise TypeError(f"{name} stands without its parameters: write {name}({'…' if fields(entry) else ''})")
    if inspect.iscoroutinefunction(entry):
        raise TypeError(f"{entry.__qualname__} is async, and an assertion is a plain function")
    if callable(getattr(entry, "measure", None)):
        raise TypeError("a metric is no assertion: call it in a function of the trial, whose text is the reason")
    if callable(entry):
        return FunctionAssertion(entry)
    if not isinstance(entry, Mapping) or len(entry) != 1:
        raise ValueError("an assertion is a name, or one name with its parameters, as in max_calls: 5")
    ((name, params),) = entry.items()
    return build_assertion(str(name), params)


def _get_representative_wait_s(after: Any) -> float:
    """The time before a turn, in seconds; the first one if each trial draws its own."""
    wait = parse_space_or_value(after)
    return float(wait.values_to_check[0] if isinstance(wait, Space) else wait)


def _suggest_name(name: str, names_known: Any) -> str:
    return suggest_name(name, names_known) if names_known else "there are none"
