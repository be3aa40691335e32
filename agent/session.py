"""One run of the agent: its prompts, their retries, and the events logged about them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Protocol

from chaoslab.agent.config import Config
from chaoslab.agent.prompts import Lookup, Prompt, fill_dates, get_value_at_path
from chaoslab.agent.tools import Toolbox
from chaoslab.analysis.verdict.judge import BUDGET, HUNG
from chaoslab.analysis.verdict.seen import Twin
from chaoslab.base.clock import Clock, format_iso
from chaoslab.base.identity import TrialId, make_nth_trial_id
from chaoslab.config.scenario import plan_from_settings
from chaoslab.config.settings import Settings
from chaoslab.core import events
from chaoslab.core.conversation import Conversation, RunningConversation
from chaoslab.core.plan import Plan
from chaoslab.record.gaps import count_writer_lines
from chaoslab.record.log import Log
from chaoslab.record.runs import Run
from chaoslab.record.steering import LOOK_S, RunSteering
from chaoslab.seams.http.seam import HttpSeam
from chaoslab.seams.http.tags import TrialState

SYSTEM = """You are a careful assistant with tools. Today is {day}, {time} UTC.
Use a tool for whatever it can tell or do; do not guess what a tool can tell. Do what is asked, once, and nothing else.
Give the values that the tools returned. If something could not be done, say plainly what and why."""


TwinOf = Callable[[int], Twin | None]
"""The twin of a prompt, by its number from 0; None if it has none."""


class Graph(Protocol):
    """The part of `create_agent`'s result that is used here."""

    async def ainvoke(self, state: Any, config: Any = None) -> Any: ...


@dataclass
class SessionProgress:
    """The progress of a run. `prompts`: their number in all. `processed`: those that have ended. `succeeded`: those
    with an answer."""

    prompts: int
    succeeded: int = 0
    processed: int = 0


@dataclass
class Session:
    """A run in progress. `run` works through all prompts; `progress` is correct at any moment."""

    settings: Settings
    config: Config
    run_of: Run
    seam: HttpSeam
    toolbox: Toolbox
    graph: Graph
    info: Log
    agent_log: Log
    clock: Clock
    progress: SessionProgress
    began_s: float = field(init=False)
    _attempts: int = field(default=0, init=False)
    _looked_up: dict[str, Any] = field(default_factory=dict, init=False)
    """The values of facts that were looked up before the first trial."""
    _chances: dict[str, float] = field(default_factory=dict, init=False)
    """The chances that somebody set while the run went on."""
    _off: list[str] = field(default_factory=list, init=False)
    """The faults that somebody has switched off."""
    change_plan: Callable[[Plan], None] = field(default=lambda _: None, kw_only=True)
    """Puts another plan in force."""
    drew: Callable[[], bool | None] = field(default=lambda: None, kw_only=True)
    """Tells if a program has drawn chance of its own in the trial; None: not known."""

    def __post_init__(self) -> None:
        self.began_s = self.clock.monotonic()

    async def run(self, prompts: Sequence[Prompt], twin_of: TwinOf = lambda _: None) -> None:
        """Runs every prompt in order, and again from the first, TRIALS times in all (REPEATS times each)."""
        now = datetime.fromisoformat(self.run_of.now)
        for number, prompt in enumerate(prompts):
            trial = make_nth_trial_id(self.run_of.name, number, len(prompts))
            for fact in prompt.facts:  # known from now on, whatever becomes of the service
                # The values of a real service may change during the run: they are looked up when their trial begins.
                if isinstance(fact, Lookup) and not self.toolbox.is_tool_of_real_service(fact.tool):
                    self._looked_up[fact.model_dump_json()] = await self._look_up_fact_value(fact, trial, now)
        for number in range(self.settings.count_trials(len(prompts))):
            trial = make_nth_trial_id(self.run_of.name, number, len(prompts))
            await self._obey_run_controls(trial)
            await self.run_trial(trial, prompts[number % len(prompts)], twin=twin_of(number % len(prompts)))

    async def _obey_run_controls(self, trial: TrialId) -> None:
        """Does what is asked of the run before its next trial: it waits, ends as by Ctrl-C, takes other chances, or
        switches faults off or on."""
        while (wanted_steering := RunSteering.read(self.run_of.folder)).hold and not wanted_steering.stop:
            await self.clock.sleep_async(LOOK_S)
        if wanted_steering.stop:
            raise asyncio.CancelledError
        changed = {
            name: chance for name, chance in wanted_steering.chances.items() if self._chances.get(name) != chance
        }
        for name, chance in changed.items():
            was = self._chances.get(name, getattr(self.settings, name.lower()))
            self._chances[name] = chance
            self.info.write(events.ChanceSet(setting=name, was=was, chance=chance), trial=trial.key)
        if changed or wanted_steering.off != self._off:
            self._off = wanted_steering.off
            fields: dict[str, Any] = {name.lower(): chance for name, chance in self._chances.items()}
            self.change_plan(plan_from_settings(replace(self.settings, **fields)).with_injections_off(self._off))
        # Each trial says it, since one whose faults were off is not replayed.
        if self._off:
            self.info.write(events.FaultsOff(injections=self._off), trial=trial.key)

    def log_run_end(self, reason: str) -> None:
        """Logs the end of the run."""
        progress = self.progress
        seconds = round(self.clock.monotonic() - self.began_s, 6)
        self.info.write(
            events.RunFinished(
                received=progress.prompts,
                processed=progress.processed,
                succeeded=progress.succeeded,
                duration_s=seconds,
                reason=reason,
                lines=count_writer_lines(self.run_of.folder),
            )
        )

    async def run_trial(self, trial: TrialId, prompt: Prompt, *, twin: Twin | None = None) -> None:
        """Runs one prompt with its retries and logs it. `twin`: the same prompt without faults."""
        index, began_s = trial.prompt, self.clock.monotonic()
        now = datetime.fromisoformat(self.run_of.now)
        facts = [await self._resolve_fact(fact, trial, now) for fact in prompt.facts]
        effects: list[dict[str, Any]] = fill_dates(prompt.effects, now)
        # What the prompt states counts; the twin's effects stand in where it states nothing.
        if twin is not None and twin.effects is not None and not prompt.has_facts_or_effects:
            effects = [*map(dict, twin.effects)]
        started = events.PromptStarted(
            prompt_index=index,
            prompt=prompt.text,
            facts=[fact for fact in facts if fact],
            effects=effects,
            stated=prompt.has_facts_or_effects or twin is not None,
        )
        if twin is not None:
            started = replace(started, twin=twin.answer, twin_s=twin.seconds, twin_calls=twin.calls)
        elif [] in facts:
            fact_pairs = zip(prompt.facts, facts, strict=True)
            tool = next(fact.tool for fact, value in fact_pairs if isinstance(fact, Lookup) and not value)
            started = replace(started, incomparable=f"a stated fact could not be looked up by {tool}")
        self.info.write(started, trial=trial.key)
        with self.seam.open_trial(trial) as episode:
            if (conversation := prompt.conversation) is None:
                outcome = await self._run_prompt_with_retries(self.make_graph_input(prompt.prompt, now), trial, episode)
            else:
                outcome = await self._run_conversation(conversation, trial, episode, now)
        if outcome.error_type == "none" and (pattern := self.settings.says_undone):
            undone = re.search(pattern, outcome.answer, re.IGNORECASE)
            self.info.write(events.AnswerRead(says={"*": False if undone else None}), trial=trial.key)
        self._log_prompt_end(trial, prompt, outcome, began_s)
        await self.seam.end_outages()

    async def _run_conversation(
        self, conversation: Conversation, trial: TrialId, episode: TrialState, now: datetime
    ) -> _Outcome:
        """Goes through the turns; ends at the first one without an answer. The agent is given all that was said."""

        def log_event(event: events.Event) -> None:
            self.info.write(event, trial=trial.key)

        talk = RunningConversation(conversation, log_event, episode.requests, episode.memory, self.clock)
        state, attempts_max = self.make_graph_input("", now), 0
        # The system's message alone stays: the turns bring the user's.
        state["messages"].pop()
        while (message := talk.advance_turn()) is not None:
            if talk.wait_s:
                await self.clock.sleep_async(talk.wait_s)
            talk.begin_turn(message)
            outcome = await self._run_prompt_with_retries(
                {"messages": [*state["messages"], ("user", message)]}, trial, episode
            )
            # The trial tells the most attempts that one of its turns needed.
            attempts_max = self._attempts = max(attempts_max, self._attempts)
            if outcome.error_type != "none":
                return outcome
            state = {"messages": outcome.messages}
            talk.finish_turn(outcome.answer)
        return _Outcome(talk.joined_answers, "none")

    async def _run_prompt_with_retries(
        self, graph_input: dict[str, Any], trial: TrialId, episode: TrialState
    ) -> _Outcome:
        """Asks the agent, again if it fails, up to the limit."""
        outcome = _Outcome("", "none")
        # One attempt, and as many more as the limit allows.
        for attempt in range(1, self.settings.resilience["prompt_limit"] + 2):
            self._attempts = attempt
            outcome = await self._run_agent_attempt(graph_input, trial, episode)
            if outcome.error_type == "none":
                break
            episode.requests.restart_prompt()
        return outcome

    def end_hung_trial(
        self, trial: TrialId, prompt: Prompt, report: str, *, began_s: float, began: bool = True
    ) -> None:
        """Ends a trial that would never have ended by itself. `report`: a report on the waiting threads and tasks.
        `began`: its events so far are written; those of a trial that ended with its process are lost."""
        outcome = _Outcome("", HUNG, report[:4000])
        if not began:
            self._attempts = 1
            self.info.write(
                events.PromptStarted(prompt_index=trial.prompt, prompt=prompt.text, facts=[], effects=None),
                trial=trial.key,
            )
        if self._attempts:
            self._log_attempt(
                trial,
                prompt.text,
                outcome,
                self.clock.utc() - timedelta(seconds=self.clock.monotonic() - began_s),
                began_s,
            )
        self._log_prompt_end(trial, prompt, outcome, began_s)

    def _log_prompt_end(self, trial: TrialId, prompt: Prompt, outcome: _Outcome, began_s: float) -> None:
        ok, seconds = outcome.error_type == "none", round(self.clock.monotonic() - began_s, 6)
        attempts, self._attempts = self._attempts, 0
        self.info.write(
            events.PromptFinished(
                prompt_index=trial.prompt,
                prompt=prompt.text,
                status="ok" if ok else "failed",
                answer=outcome.answer,
                attempts=attempts,
                duration_s=seconds,
                error_type=outcome.error_type,
                drew=self.drew(),
            ),
            trial=trial.key,
        )
        self.progress.processed += 1
        self.progress.succeeded += ok

    async def _resolve_fact(self, fact: str | list[str] | Lookup, trial: TrialId, now: datetime) -> list[str]:
        """The fact's spellings; none if the service itself gave no value."""
        if isinstance(fact, Lookup):
            value = self._looked_up.get(fact.model_dump_json())
            value = await self._look_up_fact_value(fact, trial, now) if value is None else value
            return [] if value is None else [str(value)]
        spellings: list[str] = fill_dates([fact] if isinstance(fact, str) else fact, now)
        return spellings

    async def _look_up_fact_value(self, fact: Lookup, trial: TrialId, now: datetime) -> Any:
        return get_value_at_path(
            await self.toolbox.fetch_value_past_proxies(fact.tool, fill_dates(fact.arguments, now), trial), fact.path
        )

    def make_graph_input(self, prompt: str, now: datetime) -> dict[str, Any]:
        """The input of the agent's graph."""
        system = SYSTEM.format(day=now.strftime("%A %Y-%m-%d"), time=now.strftime("%H:%M"))
        return {"messages": [("system", system), ("user", prompt)]}

    async def _run_agent_attempt(self, graph_input: dict[str, Any], trial: TrialId, episode: TrialState) -> _Outcome:
        from langgraph.errors import GraphRecursionError

        episode.stopped_by = None
        start, began_s = self.clock.utc(), self.clock.monotonic()
        try:
            # A model call and a tool step take one step of the graph each.
            result = await self.graph.ainvoke(graph_input, {"recursion_limit": 2 * self.config.steps_max})
            outcome = replace(_read_outcome(result["messages"][-1]), messages=result["messages"])
        except GraphRecursionError:
            outcome = _Outcome("", "loop", f"stopped after {self.config.steps_max} model calls")
        except Exception as error:  # noqa: BLE001 - any error of an agent fails its prompt, not the run
            outcome = _Outcome("", _classify_error(error), _describe_error(error)[:500])
            if outcome.error_type == "model" and episode.stopped_by is not None:
                outcome = _Outcome("", BUDGET, f"stopped by {episode.stopped_by.describe_passed_limit(setting=True)}")
        # A framework may have swallowed one of these; the run ends even so.
        for down in (self.seam.lanes.down, self.info.lost, self.agent_log.lost):
            if down is not None:
                raise down
        task = asyncio.current_task()
        if task is not None and task.cancelling():  # an agent may swallow an interrupt
            raise asyncio.CancelledError("the agent has swallowed it")
        self._log_attempt(trial, graph_input["messages"][-1][1], outcome, start, began_s)
        return outcome

    def _log_attempt(
        self, trial: TrialId, prompt_text: str, outcome: _Outcome, start: datetime, began_s: float
    ) -> None:
        seconds = round(self.clock.monotonic() - began_s, 6)
        self.agent_log.write(
            events.PromptAttempt(
                prompt_index=trial.prompt,
                prompt=prompt_text,
                response=outcome.answer,
                status="ok" if outcome.error_type == "none" else "error",
                start_time=format_iso(start),
                end_time=format_iso(start + timedelta(seconds=seconds)),
                duration_s=seconds,
                error_type=outcome.error_type,
                prompt_attempt=self._attempts,
                error=outcome.error,
            ),
            trial=trial.key,
        )


@dataclass(frozen=True)
class _Outcome:
    answer: str
    error_type: str
    error: str = ""
    messages: Sequence[Any] = ()
    """All that was said, the answer too."""


def _read_outcome(message: Any) -> _Outcome:
    """The outcome of the agent's last message. A call that could not be parsed ends the agent's loop as if it were an
    answer."""
    for call in getattr(message, "invalid_tool_calls", ()):
        return _Outcome(
            "", "model", f"the model called {call['name']} with arguments that are no JSON: {call['args']}"[:500]
        )
    answer = _make_printable(str(message.text).strip())
    return _Outcome(answer, "none") if answer else _Outcome("", "empty", "the model gave an empty answer")


SDK = ("groq", "langchain_groq", "langchain_core.language_models")


def _classify_error(error: Exception) -> str:
    """The kind of an error: `model` if the model's SDK raised it or could not use a reply, else `agent`."""
    frame, in_sdk = error.__traceback__, False
    while frame is not None:
        in_sdk = in_sdk or frame.tb_frame.f_globals.get("__name__", "").startswith(SDK)
        frame = frame.tb_next
    return "model" if in_sdk or type(error).__module__.startswith("groq") else "agent"


def _describe_error(error: Exception) -> str:
    """The error as text: an SDK's error with its cause, or the failure to use a reply."""
    error_text = f"{type(error).__name__}: {error}"
    if type(error).__module__.startswith("groq"):
        return _make_printable(
            # The SDK says no more than “Connection error.”; the reason is its cause.
            f"{error_text} ({error.__cause__})" if error.__cause__ and not hasattr(error, "status_code") else error_text
        )
    return _make_printable(
        f"the model's reply could not be used: {error_text}" if _classify_error(error) == "model" else error_text
    )


def _make_printable(text: str) -> str:
    """The text without lone surrogates, which JSON allows but files and terminals do not."""
    return text.encode(errors="replace").decode()
