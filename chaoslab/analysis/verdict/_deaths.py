"""The words of a verdict about an agent whose process was killed: where, and how it went on."""

from dataclasses import replace

from chaoslab.analysis.verdict.seen import TrialEvents
from chaoslab.analysis.verdict.table import Verdict
from chaoslab.base.identity import canonical
from chaoslab.core import events
from chaoslab.record.history import History


def add_agent_death_reasons(verdict: Verdict, seen: TrialEvents, history: History) -> Verdict:
    """The verdict with the deaths of its trial in its reason."""
    deaths = seen.find_events(events.AgentDied)
    if not deaths:
        return verdict
    resumed = seen.find_events(events.AgentResumed)
    how = "it never went on"
    if len(resumed) == len(deaths):
        how = "it resumed from the start" if _repeated_all_calls(seen, history, resumed[-1][0].seq) else "it went on"
    places = ", ".join(event.call_name for _, event in deaths)
    return replace(verdict, why=f"{verdict.why}; killed at {places}, {how}")


def _repeated_all_calls(seen: TrialEvents, history: History, resumed: int) -> bool:
    """True if the last process first made each call again that was made before, but for the one at which it died."""
    made = [
        (record.seq < resumed, event.at, (event.target, event.tool, canonical(event.arguments)))
        for record, event in history.find_events(events.CallStarted, trial=seen.trial)
    ]
    died = {event.at for _, event in seen.find_events(events.AgentDied)}
    before = [call for earlier, at, call in made if earlier and at not in died]
    return bool(before) and [call for earlier, _, call in made if not earlier][: len(before)] == before
