"""A trial that a search may run, and what came of it, as data. A variation is all in which a trial differs from the one
without faults. Every trial of a search has the dice and the chance of the trial that it varies, so a variation alone
decides what happens. It is run again only to tell a cause from noise."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields, replace
from functools import cached_property
from math import inf
from typing import Any, NamedTuple

from chaoslab.analysis.verdict.table import ENDED_OPEN
from chaoslab.base.identity import canonical, hash_value
from chaoslab.core.fault import get_trait, load_fault
from chaoslab.core.inject import inject
from chaoslab.core.plan import Injection

_NUMBER = re.compile(r" \(\d+\)$")
Order = tuple[tuple[int, tuple[str, ...]], ...]
"""Orders of calls that were made at the same moment: the number of the moment, from 1, and the calls' names."""
GOOD = ("correct", "degraded")
"""The outcomes that are no failure, unless others are named."""
FOR_GOOD = "for_good"
LOST = ("harm", "failed", "hung")
"""The outcomes behind which a further fault shows nothing new."""
NO_WAY_ON = (*LOST, "invalid", "unfinished")
"""The outcomes of trials that no strategy goes on from. One whose answer alone is open shows its calls and effects."""


@dataclass(frozen=True, order=True)
class Site:
    """One attempt of a request: the place of a fault. `request` and `attempt` count from 1."""

    target: str
    request: int
    attempt: int = 1
    tool: str = field(default="", compare=False)

    def __str__(self) -> str:
        suffix = "" if self.attempt == 1 else f", attempt {self.attempt}"
        return f"{self.target} {self.request}{suffix}"


@dataclass(frozen=True)
class Probe:
    """A fault with the parameters that a search tries it with. `label`: its name in a map."""

    fault: str
    params: tuple[tuple[str, Any], ...] = ()

    @property
    def label(self) -> str:
        if not self.params:
            return self.fault
        values = [f"{value:g} s" if isinstance(value, float) else str(value) for _, value in self.params]
        return f"{self.fault} {', '.join(values)}"

    def make_injection(self, site: Site, *, lasts: bool = False) -> Injection:
        """The injection that hits this attempt and no other. `lasts`: it hits all attempts from this one on."""
        injection = self._injections_cache.get((site, lasts))
        if injection is None:
            triggers: dict[str, Any] = {} if site.attempt == 1 else {"attempts": [site.attempt]}
            if lasts:
                triggers["persistence"] = FOR_GOOD
            injection = inject(self.fault, site.target, calls=[site.request], **triggers, **dict(self.params))
            self._injections_cache[site, lasts] = injection
        return injection

    @cached_property
    def _injections_cache(self) -> dict[tuple[Site, bool], Injection]:
        """Plans by dice ask for one injection many times, which is checked, and its patterns are compiled, once."""
        return {}


@dataclass(frozen=True)
class Variation:
    """The difference of a trial from the one without faults. `order`: None leaves the calls in the order of asking and
    notes nothing; () does too, and notes the moments at which several calls were made."""

    injections: tuple[Injection, ...] = ()
    order: Order | None = None

    def __post_init__(self) -> None:
        """Gives injections of one name names of their own, as a plan needs them: by their faults and places, so that
        equal faults have equal names whatever their order, and one that is left alone has no number."""
        names = [_NUMBER.sub("", injection.name) for injection in self.injections]
        injections = list(self.injections)
        nth = Counter[str]()
        numbers = range(len(injections))
        # A single one needs no order, which costs a text of it.
        for n in sorted(numbers, key=lambda n: _injection_sort_key(injections[n])) if len(injections) > 1 else numbers:
            nth[names[n]] += 1
            name = names[n] if nth[names[n]] == 1 else f"{names[n]} ({nth[names[n]]})"
            injections[n] = injections[n] if name == injections[n].name else replace(injections[n], name=name)
        # Through object, since the class is frozen.
        object.__setattr__(self, "injections", tuple(injections))

    @cached_property
    def key(self) -> str:
        """Equal for equal variations, whatever the order of their injections."""
        faults = sorted(canonical(_injection_to_json(injection)) for injection in self.injections)
        return hash_value([faults, self.order])

    @cached_property
    def part_texts(self) -> frozenset[str]:
        """A text for each injection and each order: those of a smaller variation are a part of them."""
        faults = (canonical(_injection_to_json(injection, named=False)) for injection in self.injections)
        return frozenset([*faults, *map(canonical, self.order or ())])

    @property
    def part_count(self) -> int:
        """The number of its parts."""
        return len(self.injections) + len(self.order or ())

    @cached_property
    def kills_agent_twice(self) -> bool:
        """True if it kills the agent more than once, which no agent outlives that may go on once."""
        deaths = [
            injection
            for injection in self.injections
            if any(get_trait(load_fault(choice.fault), "of_agent") for choice in injection.choices)
        ]
        return len(deaths) > 1 or any(map(is_lasting_injection, deaths))

    @property
    def targeted_requests_and_moments(self) -> frozenset[tuple[str, int]]:
        """The requests that its faults hit, and the moments whose orders it states."""
        requests = {
            (target, number)
            for injection in self.injections
            for target in injection.targets
            for number in injection.calls
        }
        return frozenset(requests | {("", moment) for moment, _ in self.order or ()})

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = {"injections": [_injection_to_json(injection) for injection in self.injections]}
        if self.order is not None:
            data["order"] = [[moment, list(names)] for moment, names in self.order]
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Variation":
        order = data.get("order")
        return cls(
            tuple(map(Injection.from_json, data["injections"])),
            None if order is None else tuple((moment, tuple(names)) for moment, names in order),
        )


def _injection_sort_key(injection: Injection) -> tuple[Any, ...]:
    full_text = canonical(_injection_to_json(injection, named=False))
    return injection.targets, injection.calls, len(injection.triggers), full_text


def _injection_to_json(injection: Injection, *, named: bool = True) -> dict[str, Any]:
    return {
        **({"name": injection.name} if named else {}),
        "choices": [
            {"fault": choice.fault, "weight": choice.weight, "params": dict(choice.params)}
            for choice in injection.choices
        ],
        "targets": list(injection.targets),
        "chance": injection.chance,
        "calls": list(injection.calls),
        "triggers": {name: injection.triggers[name] for name in sorted(injection.triggers)},
    }


class Root(NamedTuple):
    """The way in which a trial went wrong, and the place in the agent: equal for trials with one root cause. `symptom`:
    a name of `search.roots.SYMPTOMS`. `operation`: the service or function. `line`: of the user's source; empty if it
    is not known."""

    symptom: str
    operation: str = ""
    line: str = ""


@dataclass(frozen=True)
class Made:
    """One attempt that a trial made. `error`: how it ended for its caller; empty: well. `effects`: the number of
    effects in the world when it began. `given_up_s`: the seconds after which its caller gave it up, if it did. `line`:
    the line of the user's source that made it, as in "shop.py:31"; empty if it is not known. `acts`: it had an
    effect."""

    site: Site
    error: str = ""
    effects: int = 0
    given_up_s: float | None = None
    line: str = ""
    acts: bool = False


@dataclass(frozen=True)
class TriedVariation:
    """The result of one variation.

    `by`: the strategy that asked for it. `outcome`: its name. `failed`: it counts as a failure. `why`: the reason in
    one line; `kind`: the same for trials that failed alike. `met`: the names of the injections that were witnessed.
    `made`: its attempts in the order of beginning. `moments`: the names of the calls of each moment at which several
    were made, in the order in which they then began. `world`: a digest of its effects and its outcome. `harm`: a
    text for each thing done that should not have been. `tokens`: those that models counted. `drew`: the agent drew
    chance of its own. `chance`: the number of the trial that it varies, from 0, whose chance and dice it has. `held`:
    the limit by which its faults were held back, such as a lever; empty if they were not. `root`: of one that failed,
    the place in the agent at which it went wrong, and how.
    """

    number: int
    variation: Variation
    by: str
    outcome: str
    failed: bool
    why: str
    kind: str
    met: tuple[str, ...] = ()
    made: tuple[Made, ...] = ()
    moments: tuple[tuple[str, ...], ...] = ()
    world: str = ""
    harm: tuple[str, ...] = ()
    tokens: int = 0
    seconds: float = 0.0
    drew: bool = False
    chance: int = 0
    held: str = ""
    root: Root | None = None

    @property
    def is_inconclusive(self) -> bool:
        """Nothing can be concluded from it."""
        return self.outcome in ENDED_OPEN and not self.failed

    def to_json(self) -> dict[str, Any]:
        calls = [
            [*astuple(item.site), item.error, item.effects, item.given_up_s, item.line, item.acts] for item in self.made
        ]
        plain = {item.name: getattr(self, item.name) for item in fields(self)}
        return {**plain, "variation": self.variation.to_json(), "made": calls, "root": self.root and [*self.root]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "TriedVariation":
        calls = tuple(Made(Site(*row[:4]), *row[4:]) for row in data["made"])
        moments = tuple(tuple(row) for row in data["moments"])
        root = data["root"] and Root(*data["root"])
        parsed_fields = {
            "variation": Variation.from_json(data["variation"]),
            "made": calls,
            "moments": moments,
            "root": root,
        }
        return cls(**{**data, **parsed_fields, "met": tuple(data["met"]), "harm": tuple(data["harm"])})

    @cached_property
    def attempt_sites(self) -> tuple[Site, ...]:
        return tuple(dict.fromkeys(call.site for call in self.made))

    @property
    def first_site_per_target(self) -> list[Site]:
        """The first attempt at each target."""
        by_target: dict[str, Site] = {}
        for site in self.attempt_sites:
            by_target.setdefault(site.target, site)
        return [*by_target.values()]

    @cached_property
    def path_digest(self) -> str:
        """The way that the trial took: its attempts with their ends, its effects and its answer."""
        return hash_value([[(str(call.site), call.site.tool, bool(call.error)) for call in self.made], self.world])


class SearchKnowledge:
    """All that a search knows: what is possible, and what was tried. `probes`: the faults that apply, by target.
    `seed`: of the dice of strategies. `patience_s`: the seconds after which the run itself ends a call that nobody
    gives up, which is no timeout of its caller."""

    def __init__(
        self, calm: TriedVariation, probes: Mapping[str, Sequence[Probe]], *, seed: int, patience_s: float = inf
    ) -> None:
        self.calm, self.probes, self.seed, self.patience_s = calm, probes, seed, patience_s
        self.longest_s = inf
        """The longest delay that is tried, in seconds: in real time somebody waits for it."""
        self.tried: dict[str, TriedVariation] = {}
        self._given_up = dict[str, list[float]]()
        self._settled = dict[str, tuple[float, ...]]()
        self.add_trial(calm)

    def add_trial(self, tried: TriedVariation) -> None:
        self.tried[tried.variation.key] = tried
        self.learn_timeouts(tried)

    def learn_timeouts(self, tried: TriedVariation) -> None:
        """Takes the seconds after which a trial's calls were given up."""
        for call in tried.made:
            if call.given_up_s is not None and call.given_up_s < self.patience_s:
                timeouts = self._given_up.setdefault(call.site.target, [])
                timeouts += [call.given_up_s] if call.given_up_s not in timeouts else []

    def find_trial(self, variation: Variation) -> TriedVariation | None:
        """Its result; None if it was not tried."""
        return self.tried.get(variation.key)

    def get_timeouts_s(self, target: str) -> tuple[float, ...]:
        """The seconds after which a caller of the target gives up, of each timeout that was met."""
        return self._settled.get(target, tuple(self._given_up.get(target, ())))

    def freeze_timeouts(self, target: str) -> None:
        """Has these be the timeouts of the target from now on, so that a delay has the same doses everywhere."""
        self._settled.setdefault(target, self.get_timeouts_s(target))

    @cached_property
    def sites_with_effects(self) -> frozenset[Site]:
        """The attempts that had an effect in the trial without faults."""
        return frozenset(call.site for call in self.calm.made if call.acts)

    def list_single_fault_trials(self) -> Iterator[tuple[TriedVariation, Injection]]:
        """The trials with one fault at one attempt, of a call that the trial without faults makes too."""
        for tried in self.tried.values():
            injections = tried.variation.injections
            if len(injections) == 1 and tried.variation.order is None and not is_lasting_injection(injections[0]):
                yield tried, injections[0]


def is_lasting_injection(injection: Injection) -> bool:
    """Tells if it hits all attempts from its first hit on."""
    return injection.triggers.get("persistence") == FOR_GOOD


def get_injection_site(injection: Injection) -> Site:
    """The attempt that an injection of a search hits."""
    attempts = injection.triggers.get("attempts", [1])
    return Site(injection.targets[0], injection.calls[0], attempts[0])
