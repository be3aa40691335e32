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

    def agent(self, agent: Any = None, *, command: Sequence[str] | None = None) -> Self:
        """The agent: a callable, "module:name", "lab" for the lab's own with its tools and the offline model, or
        `command`, a program and its arguments."""
        if (agent is None) == (command is None):
            raise TypeError("agent takes a callable, or command=[program, …]")
        return self._with("agent", {"command": list(command)}) if command is not None else self._named("agent", agent)

    def fresh(self, make: Any) -> Self:
        """The function that makes a new agent for each trial, or its "module:name"."""
        return self._named("fresh", make)

    def tools(self, *functions: Any) -> Self:
        """More functions that change the world, or their "module:name"; a mapping names them."""
        return self._more_named("tools", functions)

    def reads(self, *functions: Any) -> Self:
        """More functions that only read, or their "module:name"."""
        return self._more_named("reads", functions)

    def service(self, host: str, app: Any, *, model: bool = False) -> Self:
        """An application at a host's name, or its "module:name". `model`: it speaks a model's API."""
        made, name = self._object("services", app)
        made = made._with("services", {**self.data.get("services", {}), host: name})
        return made._more("models", [host]) if model else made

    def upstream(self, name: str, url: str) -> Self:
        """A service in real time, as in `upstream("crm", "http://127.0.0.1:9000")`; the agent finds the gateway's
        address in CRM_URL."""
        return self._with("upstreams", {**self.data.get("upstreams", {}), name: url})

    def resume_with(self, agent: Any, *, resumes: int = 1) -> Self:
        """The agent that goes on when the first was killed, or its "module:name", and how often it may."""
        made = self._named("resume_with", agent)
        return made if resumes == 1 else made._with("resumes", resumes)

    def state(self, read: Any) -> Self:
        """The function that returns the state of the agent's world, or its "module:name"."""
        return self._named("state", read)

    def judge(self, who: Any) -> Self:
        """The one asked about answers of which only words would tell: "model", or a function or its "module:name"."""
        return self._named("judge", who)

    def ask(self, say: str, *, after: Time | None = None, expect: Sequence[Any] = ()) -> Self:
        """The user's words. A second call adds a turn. `after`: the time that passes before it, in seconds or as in
        "2h". `expect`: assertions about this turn."""
        turn = {"say": say, **({"after": after} if after is not None else {}), **_stated(expect)}
        if "prompt" not in self.data and "turns" not in self.data and len(turn) == 1:
            return self._with("prompt", say)
        return self._turn(say if len(turn) == 1 else turn)

    def reply(self, words: Mapping[str, str], *, after: Time | None = None, expect: Sequence[Any] = ()) -> Self:
        """A turn with the words for the first pattern that is found in the agent's last answer."""
        return self._turn({"reply": dict(words), **({"after": after} if after is not None else {}), **_stated(expect)})

    def user(self, words: Mapping[str, str], *, turns_max: int | None = None) -> Self:
        """A scripted user, who goes on answering: the words for the first pattern that is found in the agent's last
        answer, until none is, or the conversation has `turns_max` turns."""
        made = self._more("user", [{"when": when, "say": say} for when, say in words.items()])
        return made if turns_max is None else made._with("turns_max", turns_max)

    def call(
        self, tool: str, args: Mapping[str, Any] | None = None, *, after: Time | None = None,
        expect: Sequence[Any] = (),
    ) -> Self:  # fmt: skip
        """One more call of a tool or read by its name, without an agent. `expect`: assertions about this call."""
        more = {**({"args": _plain(args)} if args is not None else {}), **_given(after=after), **_stated(expect)}
        return self._more("operations", [{"tool": tool, **more}])

    def fault(self, fault: Any, target: str | Sequence[str] | None = None, **arguments: Any) -> Self:
        """One more source of faults: the arguments of `lab.inject`, or what `lab.inject` returned."""
        if not isinstance(fault, str):
            if target is not None or arguments:
                raise TypeError("an injection has its target and arguments already")
            return self._more("faults", [arguments_of(fault)])
        return self._more("faults", [{"fault": fault, **_given(target=target), **_plain(arguments)}])

    def level(self, chaos_level: float | Mapping[str, Any], *families: str) -> Self:
        """The level of chaos at all tools, reads and services, from these families of faults."""
        made = self._with("chaos_level", chaos_level)
        return made._with("families", list(families)) if families else made

    def budget(self, **limits: Any) -> Self:
        """The limits of a trial: tokens, dollars (over the whole run), calls, seconds; mode="hard" or "soft"."""
        return self._with("budget", _plain(limits))

    def slo(self, share: float, *, within: float | str | None = None, tool: str | None = None) -> Self:
        """One more objective over all trials: this share of the calls of `tool` succeeds `within` seconds (or "2s")."""
        return self._more("slo", [{"share": share, **_given(within=within, tool=tool)}])

    def variant(self, name: str, **keys: Any) -> Self:
        """One more variant: the same with other values of these keys. A fault's parameter is a key with a dot, as in
        `**{"lost_reply.chance": 0.1}`."""
        return self._more("variants", [{"name": name, **_plain(keys)}])

    def matrix(self, **lists: Sequence[Any]) -> Self:
        """The variants as the product of lists of values, by key."""
        return self._with("variants", _plain(lists))

    def expect(self, *assertions: Any) -> Self:
        """More assertions: `lab.expect.max_calls(3)`, or as in a file."""
        return self._more("expect", _asserted(assertions))

    def effects(self, *effects: Mapping[str, Any]) -> Self:
        """The effects that must happen, and no others."""
        return self._with("effects", [_plain(effect) for effect in effects])

    def facts(self, *facts: str | Sequence[str]) -> Self:
        """More texts that the answer must show; a list holds spellings of one."""
        return self._more("facts", [_plain(fact) for fact in facts])

    def accept(self, *outcomes: str) -> Self:
        """The outcomes that pass."""
        return self._with("accept", [str(outcome) for outcome in outcomes])

    def set(self, **keys: Any) -> Self:
        """Other keys of a scenario's file, as in `set(trials=50, seed=2, world="local")`."""
        made = self
        for key, value in keys.items():
            made = made._with(key, _plain(value))
        return made

    def within(self, file: str, folder: Path) -> Self:
        """The same, as the scenario of a file whose modules are sought in this folder first."""
        return replace(self, file=file, folder=folder)

    def check(self, *, changed: Sequence[str] = ()) -> tuple[Scenario, ...]:
        """The scenario checked: one, or one for each variant. `changed`: values in place of its own, as in "trials=50".
        Raises ScenarioErrors: a ValueError; something is wrong, one line each."""
        from chaoslab.scenarios.load import changed_by, checked
        from chaoslab.scenarios.located import Located

        where = self.file or f"scenario '{self.data.get('name', '')}'"
        located = changed_by(Located(where, _plain(self.data)), changed)
        return checked(located, folder=self.folder, objects=self.objects)

    def run(
        self, *, trials: int | None = None, seed: int | None = None, jobs: int = 1, logs: str | Path | None = None,
        trial: int | None = None,
    ) -> Results:  # fmt: skip
        """Runs all trials of all variants. `trials`, `seed`: in place of the scenario's own. `logs`: a folder for the
        runs' logs. `trial`: this one alone, from 1. Raises ScenarioError: a ValueError; something is wrong or cannot be
        imported."""
        from chaoslab.scenarios.running import Result, run
        from chaoslab.scenarios.tell import again

        results = []
        given = () if seed is None else (f"seed={seed}",)
        for scenario in self.check():
            result = Result(scenario)
            place = None if logs is None else Path(logs)
            command = partial(again, scenario, given=given)
            for ruling in run(scenario, trials=trials, seed=seed, jobs=jobs, logs=place, only=trial, again=command):
                result.add(ruling)
            results.append(result)
        return Results(tuple(results), given)

    def test(self, **options: Any) -> Results:
        """Runs it like `run`, for a test. Raises AssertionError: it does not hold, or it proves nothing; the message
        has the trials that show it."""
        results = self.run(**options)
        if not results.passed:
            raise AssertionError(f"\n{results}")
        return results

    def to_file(self, path: str | Path) -> Path:
        """Writes the scenario to a file, as YAML, JSON or TOML by its suffix. `lab.load_scenario` reads it again.
        Raises ScenarioErrors: something is wrong. ScenarioError: a value that no file can hold, such as a lambda; both
        are ValueErrors of one line. OSError: the file cannot be written."""
        from chaoslab.scenarios.located import ScenarioError
        from chaoslab.scenarios.writing import plain_data, write

        where = f"scenario '{self.data.get('name', '')}' cannot be written: "
        try:
            for dotted, found in self.objects.items():
                if why := _unnamed(dotted, found):
                    raise ScenarioError(why)
            data = {key: plain_data(value, key) for key, value in self.data.items()}
            self.check()
            write(data, Path(path))
        except ScenarioError as error:
            said = str(error)
            raise ScenarioError(said if said.startswith(("scenario '", str(path))) else where + said) from None
        return Path(path)

    def _with(self, key: str, value: Any) -> Self:
        return replace(self, data={**self.data, key: value})

    def _more(self, key: str, values: Sequence[Any]) -> Self:
        return self._with(key, [*self.data.get(key, []), *values])

    def _turn(self, turn: Any) -> Self:
        data = dict(self.data)
        first = [data.pop("prompt")] if "prompt" in data else []
        return replace(self, data={**data, "turns": [*data.get("turns", []), *first, turn]})

    def _named(self, key: str, given: Any) -> Self:
        made, name = self._object(key, given)
        return made._with(key, name)

    def _more_named(self, key: str, given: Sequence[Any]) -> Self:
        made = self
        for each in given:
            if isinstance(each, Mapping):
                for given_name, function in each.items():
                    made, name = made._object(key, function)
                    made = made._with(key, {**made.data.get(key, {}), given_name: name})
                continue
            made, name = made._object(key, each)
            made = made._more(key, [name])
        return made

    def _object(self, key: str, given: Any) -> tuple[Self, str]:
        """The scenario that knows this object, and the object's name in the data."""
        if isinstance(given, str):
            return self, given
        if given is None or isinstance(given, bool | int | float | list | tuple | dict):
            raise TypeError(f"{key} is {given!r:.60}: it should be a callable, or its name, as in 'shop.agent:answer'")
        known = next((name for name, other in self.objects.items() if other is given), None)
        name = known or _free(_name(given), self.objects)
        return replace(self, objects={**self.objects, name: given}), name


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
        from chaoslab.scenarios.tell import result_text

        return "\n".join(result_text(each, given=self.given) for each in self.results)


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
    from chaoslab.scenarios.load import load
    from chaoslab.scenarios.located import read

    load(Path(path))
    return ScenarioBuilder(read(Path(path)).data, {}, str(path), Path(path).parent)


def _given(**values: Any) -> dict[str, Any]:
    return {key: _plain(value) for key, value in values.items() if value is not None}


def _plain(value: Any) -> Any:
    """The same with lists in place of tuples, and new mappings."""
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _asserted(assertions: Sequence[Any]) -> list[Any]:
    return [_plain(each) for each in assertions]


def _stated(expect: Sequence[Any]) -> dict[str, Any]:
    return {"expect": _asserted(expect)} if expect else {}


def arguments_of(given: Any) -> dict[str, Any]:
    """The arguments that make this injection. Raises TypeError: it is none. ValueError: it chooses between several
    faults, as those of a level do."""
    from chaoslab.core.plan import Injection

    if not isinstance(given, Injection):
        raise TypeError(f"a fault is a name or lab.inject(…), and this is {given!r:.60}")
    if len(given.choices) != 1:
        raise ValueError(f"'{given.name}' chooses between several faults: say level(…), or one fault after the other")
    (choice,) = given.choices
    usual = f"{choice.fault} on {', '.join(given.targets)}"
    return {
        "fault": choice.fault,
        "target": given.targets[0] if len(given.targets) == 1 else list(given.targets),
        **({"name": given.name} if given.name != usual else {}),
        **({"chance": given.chance} if given.chance != 1 else {}),
        **({"calls": list(given.calls)} if given.calls else {}),
        **_plain(given.triggers),
        **_plain(choice.params),
    }


def _name(given: Any) -> str:
    """module:name of an object; a name in the module `here` if it has none of its own."""
    module, name = getattr(given, "__module__", None), getattr(given, "__qualname__", None)
    found = f"{module}:{name}"
    if isinstance(module, str) and isinstance(name, str) and _found(found) is given:
        return found
    last = str(getattr(given, "__name__", type(given).__name__)).rpartition(".")[2]
    return f"{HERE}:{last if last.isidentifier() else 'function'}"


def _free(name: str, taken: Mapping[str, Any]) -> str:
    return (
        name
        if name not in taken
        else next(f"{name}_{n}" for n in range(2, len(taken) + 3) if f"{name}_{n}" not in taken)
    )


def _found(dotted: str) -> Any:
    """The object of this name in a module that is loaded; None if there is none."""
    module, _, path = dotted.partition(":")
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = getattr(found, part, None)
    return found


def _unnamed(dotted: str, given: Any) -> str:
    """The reason why a file cannot name this object; empty if it can."""
    name = getattr(given, "__qualname__", type(given).__name__)
    if dotted.startswith("__main__:"):
        return f"{name} is defined in the program that was started: move it to a module of its own"
    if _found(dotted) is given:
        return ""
    what = "a lambda" if name.endswith("<lambda>") else f"{name}, which is no function of a module"
    return f"{what} has no name that a file could give: define a function in a module".replace(
        ", which is no function of a module has", " is no function of a module and has"
    )
