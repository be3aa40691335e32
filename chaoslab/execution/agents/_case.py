"""The question to a user's agent, its tools, the right result as far as it is known, and the result of a trial."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

from chaoslab.analysis.verdict.judge import judge_trial
from chaoslab.analysis.verdict.seen import Twin
from chaoslab.analysis.verdict.table import Outcome, Verdict
from chaoslab.base.identity import make_nth_trial_id
from chaoslab.base.jsonable import describe_error
from chaoslab.base.user_line import Raised, find_raised_line
from chaoslab.core import events
from chaoslab.core.conversation import Conversation
from chaoslab.core.plan import Plan
from chaoslab.execution.agents.functions import get_function_name, hash_agent_file
from chaoslab.execution.drawn import DrawnPlan
from chaoslab.execution.options import RunOptions
from chaoslab.execution.spec import TrialSpec
from chaoslab.execution.workers import make_picklable_error
from chaoslab.record.history import History
from chaoslab.record.log import BufferedEvent
from chaoslab.record.trial_log import TrialLog
from chaoslab.seams.gateway.routes import GatewayRoute

SETTLE_S = {"virtual": 60.0, "local": 30.0}
"""The time for what is under way at the answer, by default, in the world's seconds."""
TWIN_FIELDS = (
    "effects",
    "exact",
    "incomparable",
    "notes",
    "of_one_event",
    "pending",
    "right_state",
    "stated",
    "twin",
    "twin_says",
)
"""The fields of a case that are its twin's results."""


@dataclass
class AgentResult:
    """The result of one trial; see `TrialResult`. `book`: its events. `warnings`: warnings about it. `called`: the
    names of the functions and services that were called. `pending`: a warning about what was under way still when the
    trial ended. `run_spent_usd`: the run's spending for models at the end of the trial, in dollars."""

    book: TrialLog
    answer: Any = None
    error: BaseException | None = None
    hung: str = ""
    pending: str = ""
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()
    called: frozenset[str] = frozenset()
    run_spent_usd: float = 0.0
    verdict: Verdict | None = None
    """Its verdict by its events alone; None if it was not judged where it ran."""
    met: tuple[str, ...] | None = None
    """The injection of each fault that was witnessed, in order; None likewise."""
    _kept: list[BufferedEvent] | None = None
    is_story_requested: bool = False
    off: tuple[str, ...] = ()
    """The injections of the plan that somebody had switched off."""
    shown: Any = None
    """The content of its events for a search, read where it ran (`exploring.Shown`); None likewise."""

    raised: Raised = Raised()
    """The line of the user's source that its error passed last, if lines were noted."""
    drew: bool | None = None
    """A program drew chance of its own; None: not known, in real time."""
    twin: "AgentResult | None" = None
    """Its own twin, if it has one."""
    once: "AgentResult | None" = None
    """Of a trial without faults, the one in which equal turns are asked once, if that has the same kinds of effects."""

    def add_verdict(self, *, lines: bool) -> "AgentResult":
        """The result with all that is asked of every trial, so that another process need not read its events. `lines`:
        those of the run's log too."""
        self.verdict = judge_trial(self.history, self.book.key)
        self.met = tuple(event.injection for _, event in self.history.find_events(events.FaultWitnessed))
        if lines:
            # Here, where the trial ran: spelt by the process that takes the results, all of them would wait for one.
            buffered = self.buffered_events
            if self.book.plain:
                self.book.spelt = buffered
            else:
                self._kept = buffered
        return self

    @property
    def ok(self) -> bool:
        return self.error is None and not self.hung

    @property
    def outcome(self) -> Outcome:
        # Kept, since whoever takes the result asks for its verdict too.
        self.verdict = self.verdict or judge_trial(self.history, self.book.key)
        return self.verdict.outcome

    def add_event(self, event: events.Event) -> None:
        """Adds an event to the trial, which may change its verdict."""
        self.book.append_to_history(event)
        self.verdict = None

    @property
    def witnessed(self) -> int:
        return sum(1 for _ in self.history.find_events(events.FaultWitnessed)) if self.met is None else len(self.met)

    @property
    def history(self) -> History:
        return self.book.history

    @property
    def buffered_events(self) -> list[BufferedEvent]:
        return self.book.buffered_events if self._kept is None else self._kept

    def __getstate__(self) -> dict[str, Any]:
        """Replaces an error that cannot be rebuilt in another process by its name and message."""
        error = self.error
        return {**vars(self), "error": None if error is None else make_picklable_error(error, describe_error(error))}

    def record_error_line(self) -> None:
        """Finds the line of its error, whose traceback goes to no other process."""
        self.raised = find_raised_line(self.error) if self.error is not None else Raised()


@dataclass(frozen=True)
class AgentCase:
    """The trials of a user's agent as a value.

    `tools` have effects, `reads` have none. `effects` and `facts` describe the right result; `effects` is None if not
    stated. `stated`: something about the result is known, stated or from the twin. `twin`: the run to compare with;
    `incomparable`: the reason if there is none. `now`: the wall clock's time at the start of a virtual trial.
    """

    agent: Any
    prompt: Any
    tools: Sequence[Any]
    reads: Sequence[Any]
    plan: Plan
    name: str
    now: str
    deadline_s: float
    services: Mapping[str, Any]
    effects: Sequence[Mapping[str, Any]] | None = None
    facts: Sequence[Sequence[str]] = ()
    stated: bool = False
    twin: Twin | None = None
    incomparable: str = ""
    notes: tuple[str, ...] = field(default=())
    """Warnings that hold for each of its trials."""
    options: RunOptions = field(default_factory=RunOptions)
    """The options that have no form of their own here."""
    models: tuple[str, ...] = ()
    """The services that speak a model's API."""
    called: frozenset[str] | None = None
    """The names of the functions that the twin called, if there is a twin."""
    ignore: frozenset[str] = frozenset()
    """Parameters that are no arguments of a request."""
    upstreams: Mapping[str, GatewayRoute] = field(default_factory=dict)
    """Services behind a gateway, in the local world."""
    drawn: Mapping[str, Any] = field(default_factory=dict)
    """The values that were drawn for the only trial, by name."""
    twin_says: Mapping[str, Any] | None = None
    """The values that `says` reads in the twin's answer; None if there are none."""
    finds_lines: bool = False
    """Each trial notes the lines of the user's source at which calls were made and an error was raised."""
    mitigation: str = ""
    """The mitigation that is tried around its functions; see `seams.functions.mitigations`."""
    right_state: Any = None
    """The end state of the twin; None: nothing to compare with."""
    exact: bool = False
    """The effects are the twin's."""
    of_one_event: bool = False
    """Equal turns are one event, whose effect is wanted once."""
    own_twins: Self | None = None
    """The case before its first twin, if each trial has a twin of its own; None if all have that one."""
    unlike: Mapping[str, str] = field(default_factory=dict)
    """The parts (answer, state, effects) in which two runs of the twin differ, each with the difference in words."""
    twice: bool = False
    """The first twin repeats effects, and its trials run anyway."""
    pending: str = ""
    """The twin's warning about waits that went on when its time to settle was over."""

    @cached_property
    def callable_names(self) -> tuple[str, ...]:
        """The names of its functions, and of the services that faults are aimed at."""
        may_hit = [injection for injection in self.plan.injections if injection.may_hit]
        aimed_at = [
            name for name in (*self.services, *self.upstreams) if any(candidate.covers(name) for candidate in may_hit)
        ]
        return (*map(get_function_name, (*self.tools, *self.reads)), *aimed_at)

    # Cached, since it is the same for all trials of a run: it is made and spelt once.
    @cached_property
    def opening_events(self) -> tuple[events.Event, ...]:
        """The events with which each of its trials begins."""
        twin, options = self.twin, self.options
        started = events.PromptStarted(
            prompt_index=1,
            prompt=str(self.prompt),
            facts=[list(fact) for fact in self.facts],
            effects=None if self.effects is None else [dict(effect) for effect in self.effects],
            stated=self.stated,
            incomparable=self.incomparable,
            state=self.right_state,
            undoes=dict(options.undoes) if options.undoes else None,
            idempotent=list(options.idempotent) if options.idempotent else None,
            ordered=options.ordered or None,
            exact=self.exact or None,
            twin=None if twin is None else twin.answer,
            twin_s=None if twin is None else twin.seconds,
            twin_calls=None if twin is None else twin.calls,
            twin_asked=list(twin.asked) if twin is not None and twin.asked else None,
            twin_failed=list(twin.failed) if twin is not None and twin.failed else None,
        )
        return (started, events.ValuesDrawn(values=dict(self.drawn))) if self.drawn else (started,)

    @property
    def settle_s(self) -> float:
        """The longest time that what is under way at the answer may go on, in the world's seconds."""
        settle_option = self.options.settle_s
        return SETTLE_S[self.options.world] if settle_option is None else settle_option

    def with_twin_from(self, twin_case: Self) -> Self:
        """The same trials beside the twin of the other case."""
        run = replace(self, **{name: getattr(twin_case, name) for name in TWIN_FIELDS})
        has_own_waits = self.twin is not None and self.twin.seconds is None  # its waits are not the twin's
        return replace(run, twin=replace(run.twin, seconds=None)) if has_own_waits and run.twin is not None else run

    def with_drawn_plan(self, drawn: DrawnPlan) -> Self:
        """The same run with the plan of one trial. Where its waits are its own, the twin's duration says nothing."""
        run = replace(self, plan=drawn.apply_to_plan(self.plan), drawn=drawn.values)
        if drawn.order is not None:
            run = replace(run, options=replace(run.options, order=drawn.order))
        if not drawn.waits or not isinstance(self.prompt, Conversation):
            return run
        prompt = self.prompt.with_waits(drawn.waits)
        return replace(
            run,
            prompt=prompt,
            deadline_s=self.deadline_s + prompt.total_wait_s - self.prompt.total_wait_s,
            twin=self.twin and replace(self.twin, seconds=None),
        )

    def with_injections_off(self, off: Collection[str]) -> Self:
        """The same run with these injections switched off."""
        return replace(self, plan=self.plan.with_injections_off(off)) if off else self

    def get_work_item_name(self, spec: TrialSpec) -> str:
        """The trial's key, as in the logs."""
        return make_nth_trial_id(self.name, spec.number, 1).key

    @property
    def real_time_limit_s(self) -> float:
        """The most seconds of real time for a trial."""
        # In real time the deadline passes in real time too, for each process of the agent's.
        processes = 1 + self.options.resumes * (self.options.resume_with is not None)
        return self.options.real_limit_s + (self.deadline_s * processes if self.options.world == "local" else 0.0)

    @property
    def is_sequential(self) -> bool:
        """True if a budget in dollars counts over the whole run."""
        # Side by side, no trial would know what the others have spent.
        return any(choice.params.get("cost_usd") for i in self.plan.injections for choice in i.choices)

    def make_run_started_event(self, trials: int) -> events.RunStarted:
        """The first event of the run. The log does not hold the agent's program, so the run cannot be replayed."""
        code = {"log": str(events.VERSION), "the agent": hash_agent_file(self.agent)}
        if self.options.resume_with is not None:
            code["what goes on"] = hash_agent_file(self.options.resume_with)
        return events.RunStarted(
            seed=self.plan.seed,
            settings={"TOOL_TIMEOUT_S": self.options.timeout_s, "DEADLINE_S": self.deadline_s},
            plan=self.plan.to_json(),
            prompts=trials,
            now=self.now,
            model=get_function_name(self.agent),
            world=self.options.world,
            code=code,
        )
