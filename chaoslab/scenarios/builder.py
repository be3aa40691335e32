"""A scenario in Python: each method returns the scenario with one thing more."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from chaoslab.record.rulings import RulingState
    from chaoslab.scenarios.running import Result
    from chaoslab.scenarios.scenario import Scenario

Time = float | str | Mapping[str, Any]
"""Seconds, a duration as in "2h", or the range or choices that each trial draws from, as in {"from": 1, "to": "2h"}."""
HERE = "here"
"""The module in the name of an object that no import finds."""


@dataclass(frozen=True)
class ScenarioBuilder:
    """A scenario that is made step by step, with the keys of a scenario's file. Nothing is checked before `check`,
    `run` or `to_file`, and no method changes the scenario that it is called on. `data`: the scenario as a file has it.
    `objects`: the user's functions by their name in `data`. `file`, `folder`: the file that it was read from."""

    data: Mapping[str, Any]
    objects: Mapping[str, Any]
    file: str = ""
    folder: Path | None = None

    def agent(self, agent: Any = None, *, command: Sequence[str] | None = None, reset: str | None = None) -> Self:
        """The agent: a callable, "module:name", "lab" for the lab's own with its tools and the offline model, or
        `command`, a program and its arguments. `reset`: a shell's command before each trial of that."""
        return self._set_agent("agent", agent, command, **({"reset": reset} if reset else {}))

    def fresh(self, make: Any) -> Self:
        """The function that makes a new agent for each trial, or its "module:name"."""
        return self._set_named_object("fresh", make)

    def tools(self, *functions: Any) -> Self:
        """More functions that change the world, or their "module:name"; a mapping names them."""
        return self._append_functions("tools", functions)

    def reads(self, *functions: Any) -> Self:
        """More functions that only read, or their "module:name"."""
        return self._append_functions("reads", functions)

    def service(self, host: str, app: Any, *, model: bool = False) -> Self:
        """An application at a host's name, or its "module:name". `model`: it speaks a model's API."""
        builder, name = self._register_object("services", app)
        builder = builder._set_key("services", {**self.data.get("services", {}), host: name})
        return builder._append_values("models", [host]) if model else builder

    def upstream(self, name: str, url: str) -> Self:
        """A service in real time, as in `upstream("crm", "http://127.0.0.1:9000")`; the agent finds the gateway's
        address in CRM_URL."""
        return self._set_key("upstreams", {**self.data.get("upstreams", {}), name: url})

    def resume_with(self, agent: Any = None, *, command: Sequence[str] | None = None, resumes: int = 1) -> Self:
        """The agent that goes on when the first was killed, or its "module:name", or for a command `command`, and how
        often it may."""
        made = self._set_agent("resume_with", agent, command)
        return made if resumes == 1 else made._set_key("resumes", resumes)

    def state(self, read: Any) -> Self:
        """The function that returns the state of the agent's world, or its "module:name"."""
        return self._set_named_object("state", read)

    def judge(self, who: Any) -> Self:
        """The one asked about answers of which only words would tell: "model", or a function or its "module:name"."""
        return self._set_named_object("judge", who)

    def ask(self, say: str, *, after: Time | None = None, expect: Sequence[Any] = ()) -> Self:
        """The user's words. A second call adds a turn. `after`: the time that passes before it, in seconds or as in
        "2h". `expect`: assertions about this turn."""
        turn = {"say": say, **({"after": after} if after is not None else {}), **_make_expect_entry(expect)}
        # A prompt alone, until there is a second turn.
        if "prompt" not in self.data and "turns" not in self.data and len(turn) == 1:
            return self._set_key("prompt", say)
        return self._append_turn(say if len(turn) == 1 else turn)

    def reply(self, words: Mapping[str, str], *, after: Time | None = None, expect: Sequence[Any] = ()) -> Self:
        """A turn with the words for the first pattern that is found in the agent's last answer."""
        return self._append_turn(
            {"reply": dict(words), **({"after": after} if after is not None else {}), **_make_expect_entry(expect)}
        )

    def user(self, words: Mapping[str, str], *, turns_max: int | None = None) -> Self:
        """A scripted user, who goes on answering: the words for the first pattern that is found in the agent's last
        answer, until none is, or the conversation has `turns_max` turns."""
        builder = self._append_values("user", [{"when": pattern, "say": say} for pattern, say in words.items()])
        return builder if turns_max is None else builder._set_key("turns_max", turns_max)

    def call(
        self,
        tool: str,
        args: Mapping[str, Any] | None = None,
        *,
        after: Time | None = None,
        expect: Sequence[Any] = (),
    ) -> Self:
        """One more call of a tool or read by its name, without an agent. `expect`: assertions about this call."""
        entry = {
            **({"args": _copy_plain(args)} if args is not None else {}),
            **_drop_none(after=after),
            **_make_expect_entry(expect),
        }
        return self._append_values("operations", [{"tool": tool, **entry}])

    def fault(self, fault: Any, target: str | Sequence[str] | None = None, **arguments: Any) -> Self:
        """One more source of faults: the arguments of `lab.inject`, or what `lab.inject` returned."""
        if not isinstance(fault, str):
            if target is not None or arguments:
                raise TypeError("an injection has its target and arguments already")
            return self._append_values("faults", [injection_arguments(fault)])
        return self._append_values("faults", [{"fault": fault, **_drop_none(target=target), **_copy_plain(arguments)}])

    def level(self, chaos_level: float | Mapping[str, Any], *families: str) -> Self:
        """The level of chaos at all tools, reads and services, from these families of faults."""
        builder = self._set_key("chaos_level", chaos_level)
        return builder._set_key("families", list(families)) if families else builder

    def budget(self, **limits: Any) -> Self:
        """The limits of a trial: tokens, dollars (over the whole run), calls, seconds; mode="hard" or "soft"."""
        return self._set_key("budget", _copy_plain(limits))

    def slo(self, share: float, *, within: float | str | None = None, tool: str | None = None) -> Self:
        """One more objective over all trials: this share of the calls of `tool` succeeds `within` seconds (or "2s")."""
        return self._append_values("slo", [{"share": share, **_drop_none(within=within, tool=tool)}])

    def variant(self, name: str, **keys: Any) -> Self:
        """One more variant: the same with other values of these keys. A fault's parameter is a key with a dot, as in
        `**{"lost_reply.chance": 0.1}`."""
        return self._append_values("variants", [{"name": name, **_copy_plain(keys)}])

    def matrix(self, **lists: Sequence[Any]) -> Self:
        """The variants as the product of lists of values, by key."""
        return self._set_key("variants", _copy_plain(lists))

    def expect(self, *assertions: Any) -> Self:
        """More assertions: `lab.expect.max_calls(3)`, or as in a file."""
        return self._append_values("expect", _copy_assertions(assertions))

    def effects(self, *effects: Mapping[str, Any]) -> Self:
        """The effects that must happen, and no others."""
        return self._set_key("effects", [_copy_plain(effect) for effect in effects])

    def facts(self, *facts: str | Sequence[str]) -> Self:
        """More texts that the answer must show; a list holds spellings of one."""
        return self._append_values("facts", [_copy_plain(fact) for fact in facts])

    def accept(self, *outcomes: str) -> Self:
        """The outcomes that pass."""
        return self._set_key("accept", [str(outcome) for outcome in outcomes])

    def set(self, **keys: Any) -> Self:
        """Other keys of a scenario's file, as in `set(trials=50, seed=2, world="local")`."""
        builder = self
        for key, value in keys.items():
            builder = builder._set_key(key, _copy_plain(value))
        return builder

    def with_source_file(self, file: str, folder: Path) -> Self:
        """The same, as the scenario of a file whose modules are sought in this folder first."""
        return replace(self, file=file, folder=folder)

    def check(self, *, changed: Sequence[str] = ()) -> tuple[Scenario, ...]:
        """The scenario checked: one, or one for each variant. `changed`: values in place of its own, as in "trials=50".
        Raises ScenarioErrors: a ValueError; something is wrong, one line each."""
        from chaoslab.scenarios.load import apply_changes, check_and_build_scenarios
        from chaoslab.scenarios.located import Located

        location = self.file or f"scenario '{self.data.get('name', '')}'"
        located = apply_changes(Located(location, _copy_plain(self.data)), changed)
        return check_and_build_scenarios(located, folder=self.folder, objects=self.objects)

    def run(
        self,
        *,
        trials: int | None = None,
        seed: int | None = None,
        jobs: int = 1,
        logs: str | Path | None = None,
        trial: int | None = None,
    ) -> Results:
        """Runs all trials of all variants. `trials`, `seed`: in place of the scenario's own. `logs`: a folder for the
        runs' logs. `trial`: this one alone, from 1. Raises ScenarioError: a ValueError; something is wrong or cannot be
        imported."""
        from chaoslab.scenarios.running import Result, run_scenario
        from chaoslab.scenarios.tell import make_rerun_command

        results = []
        options = () if seed is None else (f"seed={seed}",)
        for scenario in self.check():
            result = Result(scenario)
            logs_folder = None if logs is None else Path(logs)
            command = partial(make_rerun_command, scenario, given=options)
            for ruling in run_scenario(
                scenario, trials=trials, seed=seed, jobs=jobs, logs=logs_folder, only=trial, again=command
            ):
                result.add_ruling(ruling)
            results.append(result)
        return Results(tuple(results), options)

    def test(self, **options: Any) -> Results:
        """Runs it like `run`, for a test. Raises AssertionError: it does not hold, or it proves nothing; the message
        has the trials that show it."""
        results = self.run(**options)
        if not results.passed:
            raise AssertionError(f"\n{results}")
        return results

    def to_file(self, path: str | Path) -> Path:
        """Writes the scenario to a file, as YAML or JSON by its suffix. `lab.load_scenario` reads it again.
        Raises ScenarioErrors: something is wrong. ScenarioError: a value that no file can hold, such as a lambda; both
        are ValueErrors of one line. OSError: the file cannot be written."""
        from chaoslab.scenarios.located import ScenarioError
        from chaoslab.scenarios.writing import to_plain_value, write_scenario_file

        location = f"scenario '{self.data.get('name', '')}' cannot be written: "
        try:
            for dotted, named_object in self.objects.items():
                if reason := _explain_unnameable(dotted, named_object):
                    raise ScenarioError(reason)
            data = {key: to_plain_value(value, key) for key, value in self.data.items()}
            # A file that `chaoslab test` would refuse is not written.
            self.check()
            write_scenario_file(data, Path(path))
        except ScenarioError as error:
            message = str(error)
            raise ScenarioError(
                message if message.startswith(("scenario '", str(path))) else location + message
            ) from None
        return Path(path)

    def _set_key(self, key: str, value: Any) -> Self:
        return replace(self, data={**self.data, key: value})

    def _append_values(self, key: str, values: Sequence[Any]) -> Self:
        return self._set_key(key, [*self.data.get(key, []), *values])

    def _append_turn(self, turn: Any) -> Self:
        data = dict(self.data)
        # The prompt becomes the first turn.
        first = [data.pop("prompt")] if "prompt" in data else []
        return replace(self, data={**data, "turns": [*data.get("turns", []), *first, turn]})

    def _set_named_object(self, key: str, named_object: Any) -> Self:
        builder, name = self._register_object(key, named_object)
        return builder._set_key(key, name)

    def _set_agent(self, key: str, agent: Any, command: Sequence[str] | None, **more: str) -> Self:
        if (agent is None) == (command is None):
            raise TypeError(f"{key} takes a callable, or command=[program, …]")
        return (
            self._set_key(key, {"command": [*command], **more})
            if command is not None
            else self._set_named_object(key, agent)
        )

    def _append_functions(self, key: str, functions: Sequence[Any]) -> Self:
        builder = self
        for function_given in functions:
            if isinstance(function_given, Mapping):
                for tool_name, function in function_given.items():
                    builder, name = builder._register_object(key, function)
                    builder = builder._set_key(key, {**builder.data.get(key, {}), tool_name: name})
                continue
            builder, name = builder._register_object(key, function_given)
            builder = builder._append_values(key, [name])
        return builder

    def _register_object(self, key: str, named_object: Any) -> tuple[Self, str]:
        """The scenario that knows this object, and the object's name in the data."""
        if isinstance(named_object, str):
            return self, named_object
        # None of these can be called; a text is a name.
        if named_object is None or isinstance(named_object, bool | int | float | list | tuple | dict):
            raise TypeError(
                f"{key} is {named_object!r:.60}: it should be a callable, or its name, as in 'shop.agent:answer'"
            )
        # By identity: one object has one name, however often it is given.
        known_name = next((name for name, known_object in self.objects.items() if known_object is named_object), None)
        name = known_name or _pick_free_name(_make_dotted_name(named_object), self.objects)
        return replace(self, objects={**self.objects, name: named_object}), name


@dataclass(frozen=True)
class Results:
    """The results of a scenario, one for each variant; prints as `chaoslab test` does."""

    results: tuple[Result, ...]
    given: tuple[str, ...] = ()
    """The arguments that the trials depend on."""

    @property
    def passed(self) -> bool:
        """True if all hold."""
        return all(str(result.state) == "passed" for result in self.results)

    @property
    def states(self) -> dict[str, RulingState]:
        """Passed, failed or invalid, by the variant's name."""
        return {result.scenario.name: result.state for result in self.results}

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results)

    def __str__(self) -> str:
        from chaoslab.scenarios.tell import render_result

        return "\n".join(render_result(result, given=self.given) for result in self.results)


def scenario(name: str, *, description: str = "") -> ScenarioBuilder:
    """A scenario in Python, with the keys of a scenario's file: `lab.scenario("refund").agent(answer).tools(refund)
    .ask("Refund order 17.").fault("lost_reply", "refund", calls=[1]).expect(lab.expect.no_duplicate_effects()).test()`.
    """
    return ScenarioBuilder({"name": name, **({"description": description} if description else {})}, {})


def load_scenario(path: str | Path) -> ScenarioBuilder:
    """The scenario of a file (YAML, JSON or TOML), as `lab.scenario` makes it. Nothing of the user's is imported.

    Raises:
        ScenarioErrors: a ValueError; the file cannot be read, or something in it is wrong, one line each.
    """
    from chaoslab.scenarios.load import load_file_scenarios
    from chaoslab.scenarios.located import read_located_data

    load_file_scenarios(Path(path))
    return ScenarioBuilder(read_located_data(Path(path)).data, {}, str(path), Path(path).parent)


def _drop_none(**values: Any) -> dict[str, Any]:
    return {key: _copy_plain(value) for key, value in values.items() if value is not None}


def _copy_plain(value: Any) -> Any:
    """The same with lists in place of tuples, and new mappings."""
    if isinstance(value, Mapping):
        return {key: _copy_plain(item) for key, item in value.items()}
    return [_copy_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _copy_assertions(assertions: Sequence[Any]) -> list[Any]:
    return [_copy_plain(assertion) for assertion in assertions]


def _make_expect_entry(expect: Sequence[Any]) -> dict[str, Any]:
    return {"expect": _copy_assertions(expect)} if expect else {}


def injection_arguments(injection: Any) -> dict[str, Any]:
    """The arguments that make this injection. Raises TypeError: it is none. ValueError: it chooses between several
    faults, as those of a level do."""
    from chaoslab.core.plan import Injection

    if not isinstance(injection, Injection):
        raise TypeError(f"a fault is a name or lab.inject(…), and this is {injection!r:.60}")
    if len(injection.choices) != 1:
        raise ValueError(
            f"'{injection.name}' chooses between several faults: say level(…), or one fault after the other"
        )
    (choice,) = injection.choices
    default_name = f"{choice.fault} on {', '.join(injection.targets)}"
    return {
        "fault": choice.fault,
        "target": injection.targets[0] if len(injection.targets) == 1 else list(injection.targets),
        **({"name": injection.name} if injection.name != default_name else {}),
        # A name of its own alone: else a file would state what it is called anyway.
        **({"chance": injection.chance} if injection.chance != 1 else {}),
        **({"calls": list(injection.calls)} if injection.calls else {}),
        **_copy_plain(injection.triggers),
        **_copy_plain(choice.params),
    }


def _make_dotted_name(named_object: Any) -> str:
    """module:name of an object; a name in the module `here` if it has none of its own."""
    module, name = getattr(named_object, "__module__", None), getattr(named_object, "__qualname__", None)
    dotted = f"{module}:{name}"
    # By identity: another object of this name may stand there by now.
    if isinstance(module, str) and isinstance(name, str) and _find_loaded_object(dotted) is named_object:
        return dotted
    last = str(getattr(named_object, "__name__", type(named_object).__name__)).rpartition(".")[2]
    # A lambda has no name that Python could read.
    return f"{HERE}:{last if last.isidentifier() else 'function'}"


def _pick_free_name(name: str, names: Mapping[str, Any]) -> str:
    return (
        name
        if name not in names
        else next(f"{name}_{n}" for n in range(2, len(names) + 3) if f"{name}_{n}" not in names)
    )


def _find_loaded_object(dotted: str) -> Any:
    """The object of this name in a module that is loaded; None if there is none."""
    module, _, path = dotted.partition(":")
    value: Any = sys.modules.get(module)
    for attribute in path.split("."):
        value = getattr(value, attribute, None)
    return value


def _explain_unnameable(dotted: str, named_object: Any) -> str:
    """The reason why a file cannot name this object; empty if it can."""
    name = getattr(named_object, "__qualname__", type(named_object).__name__)
    if dotted.startswith("__main__:"):
        return f"{name} is defined in the program that was started: move it to a module of its own"
    if _find_loaded_object(dotted) is named_object:
        return ""
    noun = "a lambda" if name.endswith("<lambda>") else f"{name}, which is no function of a module"
    return f"{noun} has no name that a file could give: define a function in a module".replace(
        ", which is no function of a module has", " is no function of a module and has"
    )
