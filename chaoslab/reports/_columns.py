"""The columns of the tables that a run's log is read as."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from chaoslab.base.identity import digest


class Column(NamedTuple):
    """One column: its name, its pandas dtype, and its meaning with the unit."""

    name: str
    dtype: str
    meaning: str


_RUN = Column("run", "string", "the run's name, by which several runs are told apart")
_WHERE = (
    _RUN,
    Column("trial", "string", "the trial's key, as in p3.r1; missing outside of trials"),
    Column("turn", "Int64", "the turn of the conversation, from 1"),
    Column("target", "string", "the service or function"),
    Column("tool", "string", "the tool, or a request's method and path"),
    Column("request", "Int64", "the number of the request to the target, from 1"),
    Column("attempt", "Int64", "the attempt at that request, from 1"),
)
_INTERVAL = (
    Column("low", "Float64", "the low end of its 95 % interval"),
    Column("high", "Float64", "the high end"),
)
COLUMNS: Mapping[str, tuple[Column, ...]] = {
    "runs": (
        _RUN,
        Column("scenario", "string", "the scenario that ran it; missing without one"),
        Column("revision", "string", "the commit that was checked out; missing if run.json names none"),
        Column("world", "string", "local, compose or virtual"),
        Column("seed", "string", "the seed of all dice, of any size"),
        Column("model", "string", "the model's name, or the agent's"),
        Column("level", "Float64", "the level of chaos, 0 without one; missing if the plan is of no one level"),
        Column("trials", "Int64", "the trials that began"),
        Column("judged", "Int64", "those that could be judged; missing if nothing was stated about right answers"),
        Column("well", "Int64", "those of them that ended well"),
        Column("open", "Int64", "trials of which it is not known if they ended well"),
        Column("done", "Int64", "trials in which all was done as asked, by ledger and end state"),
        Column("not_done", "Int64", "trials in which it was not"),
        Column("faults", "Int64", "faults that were witnessed; missing if the log knows none"),
        Column("incidents", "Int64", "the requests that met a fault from which an agent can recover"),
        Column("recovered", "Int64", "those that recovered without harm"),
        Column("mttr_s", "Float64", "the mean time to recovery, of the recovered; missing if none recovered"),
        Column("inputs", "string", "what decides it beside its settings, as JSON; what is long is a digest"),
    ),
    "trials": (
        _RUN,
        Column("trial", "string", "the trial's key, as in p3.r1"),
        Column("prompt_index", "Int64", "the prompt's number, from 1"),
        Column("prompt", "string", "the user's words"),
        Column("outcome", "string", "correct, degraded, wrong, false_success, harm, failed, hung, unknown, invalid …"),
        Column("hint", "string", "for a person: what an answer of an open trial seems to say, if any; decides nothing"),
        Column("world", "string", "as asked, left undone, harm, may have been done, not stated"),
        Column("said", "string", "right, wrong, admits it, passes over it, unclear, nothing"),
        Column("basis", "string", "end, ledger, state, facts, values, same answer, says, judge, none"),
        Column("why", "string", "the reason for the outcome, in one line"),
        Column("harms", "Int64", "things wrong on the ledger or in the end state; missing if the log knows no effects"),
        Column("answer", "string", "the agent's answer; missing if it gave none, or an empty one"),
        Column("began_s", "Float64", "its start, in seconds since the run began"),
        Column("duration_s", "Float64", "its duration in seconds of its world's time; missing if it did not end"),
        Column("twin_s", "Float64", "the duration of the trial without faults, in seconds; missing without one"),
        Column("calls", "Int64", "attempts at calls"),
        Column("faults", "Int64", "faults that were witnessed; missing if the log knows none"),
        Column("effects", "Int64", "lines on the services' ledgers; missing if the log knows none"),
        Column("tokens", "Int64", "tokens to the model and from it; missing if the log knows none"),
        Column("cost_usd", "Float64", "dollars for the model; missing if a price is not known"),
    ),
    "calls": (
        *_WHERE,
        Column("request_id", "string", "the same for each attempt of a request; missing if the log knows none"),
        Column("began_s", "Float64", "its start, in seconds since the run began"),
        Column("ended_s", "Float64", "its end, in seconds since the run began; missing if it did not end"),
        Column("duration_s", "Float64", "its duration in seconds; missing if it did not end"),
        Column("ok", "boolean", "the answer looked right to the caller; missing if it did not end or was given up"),
        Column("given_up", "boolean", "its agent cancelled it, or the trial's end cut it, and it had met no fault"),
        Column("disturbed", "boolean", "the lab's own parts failed under it, so it says nothing of its target"),
        Column("status", "Int64", "the HTTP status; missing if there was none"),
        Column("error", "string", "timed_out, refused, reset, closed … or the service's own words; missing if none"),
        Column("failure", "string", "the kind of its failure, as in 503 or timed out; missing if it did not fail"),
        Column("cause", "string", "the fault it failed by, or nobody injected; missing if it did not fail or not told"),
        Column("via", "string", "the way it went, none if it never reached its target; missing if it did not end"),
        Column("bytes", "Int64", "the size of the answer; missing if it did not end, or the log knows none"),
        Column("faults", "string", "the faults witnessed at it, with commas; empty if none, missing if not known"),
        Column("first_token_s", "Float64", "seconds until the first part of a streamed reply; missing if none came"),
        Column("last_token_s", "Float64", "seconds until its last part; missing if none came"),
    ),
    "faults": (
        *(column for column in _WHERE if column.name != "tool"),
        Column("fault", "string", "the fault's name"),
        Column("injection", "string", "the injection that it comes from"),
        Column("scheduled_s", "Float64", "the moment it was drawn, in seconds since the run began"),
        Column("injected", "boolean", "it changed the exchange (faults of the wire: see witnessed)"),
        Column("witnessed", "boolean", "the caller met it"),
        Column("evidence", "string", "the caller's observation; missing if it was not witnessed"),
        Column("params", "string", "its parameters as JSON"),
    ),
    "effects": (
        _RUN,
        Column("trial", "string", "the trial's key; missing outside of trials"),
        Column("t_s", "Float64", "the moment, in seconds since the run began"),
        Column("target", "string", "the service or function"),
        Column("tool", "string", "the tool"),
        Column("effect", "string", "the effect's name"),
        Column("request_id", "string", "its request's id, missing if it has none; lines with one id are one effect"),
        Column("content", "string", "the content as JSON"),
    ),
    "usage": (
        _RUN,
        Column("trial", "string", "the trial's key; missing outside of trials"),
        Column("t_s", "Float64", "the moment, in seconds since the run began"),
        Column("model", "string", "the model's name; missing if its answer has none"),
        Column("request", "Int64", "the number of the request to the model"),
        Column("prompt_tokens", "Int64", "tokens to the model"),
        Column("completion_tokens", "Int64", "tokens from the model"),
        Column("cost_usd", "Float64", "dollars; missing if the price is not known"),
    ),
    "incidents": (
        _RUN,
        Column("trial", "string", "the trial's key"),
        Column("target", "string", "the service or function"),
        Column("request", "Int64", "the number of the request that met the fault"),
        Column("fault", "string", "the fault that opened it"),
        Column("injection", "string", "the injection that the fault comes from"),
        Column("opened_s", "Float64", "the start of the attempt that met it, in seconds since the run began"),
        Column("duration_s", "Float64", "seconds until the right result, or until the trial's end"),
        Column("detect_s", "Float64", "seconds until it was noticed"),
        Column("repair_s", "Float64", "seconds from there to its end; missing if there was nothing to notice"),
        Column("ending", "string", "retry, fallback, late, harm, never, or censored: nobody knows if it ever would"),
        Column("recovered", "boolean", "a right result came without harm"),
        Column("cut", "boolean", "censored since the log ended first, and not since its service was dead"),
    ),
    "outcomes": (
        _RUN,
        Column("outcome", "string", "correct, degraded, wrong … : those that occurred"),
        Column("trials", "Int64", "the trials that ended so"),
        Column("share", "Float64", "their share of all trials, from 0 to 1"),
        *_INTERVAL,
    ),
    "recovery": (
        _RUN,
        Column("seconds", "Float64", "the time since the faults began"),
        Column("share", "Float64", "the share of the incidents that are not over yet, from 0 to 1"),
        *_INTERVAL,
        Column("open", "boolean", "no corner: an incident was cut short here"),
    ),
    "mttr": (
        _RUN,
        Column("fault", "string", "the fault that opened the incidents"),
        Column("incidents", "Int64", "their number"),
        Column("recovered", "Int64", "those that recovered without harm"),
        Column("by_retry", "Int64", "of these by a retry"),
        Column("by_fallback", "Int64", "of these by a fallback"),
        Column("late", "Int64", "of these late, but right"),
        Column("with_harm", "Int64", "those that recovered with harm"),
        Column("never", "Int64", "those that never recovered"),
        Column("censored", "Int64", "those of which nobody knows if they would have"),
        Column("mttr_s", "Float64", "the mean time to recovery, of the recovered; missing if none recovered"),
        Column("detect_s", "Float64", "its part until the fault was noticed, of recoveries by retry or fallback"),
        Column("repair_s", "Float64", "its part from there on"),
        Column("median_s", "Float64", "Kaplan–Meier's median; missing if it is not reached, or of fewer than 8"),
        Column("median_low_s", "Float64", "the low end of its 95 % interval"),
        Column("median_high_s", "Float64", "the high end; missing if it has none"),
    ),
    "latency": (
        _RUN,
        Column("target", "string", "the service or function"),
        Column("met", "boolean", "of the attempts that met a fault, or of the others; missing if not known"),
        Column("attempts", "Int64", "the attempts with a known duration"),
        Column("p10_s", "Float64", "the 10th percentile of their durations, in seconds"),
        Column("p50_s", "Float64", "the median"),
        Column("p90_s", "Float64", "the 90th percentile"),
    ),
    "amplification": (
        _RUN,
        Column("target", "string", "the service or function"),
        Column("requests", "Int64", "the requests that were wanted"),
        Column("attempts", "Int64", "the attempts that were sent"),
        Column("factor", "Float64", "attempts per request; 1: none was tried again"),
        Column("met_factor", "Float64", "the same of requests that met a fault; missing if none did"),
        Column("most", "Int64", "the most attempts at one request"),
    ),
    "throughput": (
        _RUN,
        Column("from_s", "Float64", "the begin of an interval, in seconds since the first trial began"),
        Column("to_s", "Float64", "its end"),
        Column("trials", "Int64", "the trials that ended in it"),
        Column("calls", "Int64", "the calls that ended in it"),
    ),
    "costs": (
        _RUN,
        Column("fault", "string", "the fault that trials met alone, or several at once"),
        Column("trials", "Int64", "those of them that can be compared with the same prompt without faults"),
        Column("seconds", "Float64", "what it added in all, in seconds; missing if not known or nothing was added"),
        Column("calls", "Float64", "the same in calls"),
        Column("tokens", "Float64", "the same in tokens"),
        Column("usd", "Float64", "the same in dollars"),
        Column("effects", "Float64", "the same in lines of ledgers"),
    ),
    "matrix": (
        _RUN,
        Column("fault", "string", "the fault"),
        Column("target", "string", "the service or function"),
        Column("state", "string", "witnessed, not witnessed, not run or not planned"),
        Column("trials", "Int64", "the trials that met it there"),
        Column("attempts", "Int64", "the attempts that met it there"),
        Column("bad", "Int64", "the trials that did not end well, of the judged ones; missing if none was judged"),
        Column("judged", "Int64", "the judged trials that met it and nothing else"),
        *_INTERVAL,
        Column("mixed", "boolean", "each met other faults too, so the figures are of all that met it"),
        Column("worst", "string", "their worst outcome"),
    ),
    "reliability": (
        _RUN,
        Column("objective", "Float64", "the share of trials that should end well (SLO)"),
        Column("judged", "Int64", "the trials that allow a conclusion"),
        Column("well", "Int64", "those that ended well"),
        Column("proven", "Float64", "the share that is exceeded with a confidence of 95 %"),
        Column("nines", "Int64", "the nines of that share"),
        Column("allowed", "Float64", "the trials that may end badly by the objective: its error budget"),
        Column("budget_left", "Float64", "the share of the budget that is left, from 0 to 1"),
        Column("burn_rate", "Float64", "the share of bad trials over the allowed one; above 1 the objective is missed"),
        Column("mttr_s", "Float64", "the mean time to recovery over the run's incidents; missing if none recovered"),
        Column("detect_s", "Float64", "its part until the fault was noticed, of recoveries by retry or fallback"),
        Column("repair_s", "Float64", "its part from there on"),
        Column("score", "Float64", "the score of reliability, from 0 to 1"),
    ),
}  # fmt: skip
"""Table → its columns."""
_OWN = frozenset(column.name for column in COLUMNS["runs"])


def settings_of(run: Mapping[str, Any]) -> dict[str, str]:
    """The settings in a row of the table `runs`."""
    return {name: as_text(value) for name, value in run.items() if name not in _OWN}


def as_text(value: Any) -> str:
    """The value of a setting as a chart and a table have it."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"{value:g}"
    if isinstance(value, str):
        return value
    return digest(value)[:6] if isinstance(value, dict) else json.dumps(value, ensure_ascii=False, default=str)
