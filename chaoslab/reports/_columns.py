"""The columns of all tables of a run: those of its log's lines and those of its measures, for data and for people."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from chaoslab.base.identity import hash_value


class Column(NamedTuple):
    """One column: its name, its pandas dtype, and its meaning with the unit. `head`: its heading in a report; without
    one it is data alone. `form`: the words for its values. `rare`: it is left out of a report if it holds nothing."""

    name: str
    dtype: str
    meaning: str
    head: str = ""
    form: str = ""
    rare: bool = False


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
    Column("low", "Float64", "the low end of its 95 % interval", "95 % interval", "interval"),
    Column("high", "Float64", "the high end"),
)
_PLACE = Column("target", "string", "the service or function; all: over all of them", "target")
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
        Column("prompts", "string", "by the digest of a prompt, those that ended well and the judged ones, as JSON"),
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
        Column("cause", "string", "the fault it failed by, or nobody injected; missing if it did not fail"),
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
    "figures": (
        _RUN,
        Column("section", "string", "the section of the report that it stands in"),
        Column("name", "string", "the figure"),
        Column("value", "Float64", "its value; missing if there are no data"),
        Column("low", "Float64", "the low end of its 95 % interval; missing without one"),
        Column("high", "Float64", "the high end"),
        Column("unit", "string", "share (0 to 1), s, USD, or what is counted; empty without one"),
        Column("n", "Int64", "the number of observations behind it"),
        Column("said", "string", "the sentence of the report on it; empty if another figure's tells it"),
    ),
    "outcomes": (
        _RUN,
        Column("outcome", "string", "correct, degraded, wrong … : those that occurred", "outcome", "words"),
        Column("trials", "Int64", "the trials that ended so", "trials"),
        Column("share", "Float64", "their share of all trials, from 0 to 1", "share", "share"),
        *_INTERVAL,
    ),
    "impact": (
        _RUN,
        Column("fault", "string", "the fault", "fault met"),
        _PLACE,
        Column("trials", "Int64", "the trials that met it there", "trials"),
        Column("bad", "Int64", "those that did not end well, of the judged ones", "did not end well", "rate"),
        Column("judged", "Int64", "the judged ones"),
        *(column._replace(head="") for column in _INTERVAL),
        Column("without", "Float64", "the same share of trials that called there and met none", "without it", "share"),
        Column("more_s", "Float64", "the seconds that such a trial took more, as a mean", "seconds more", "more", True),
        Column("more_calls", "Float64", "the calls that it made more, in the mean", "calls more", "+.1f", True),
        Column("outcomes", "string", "the outcomes of all trials that met it"),
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
        Column("fault", "string", "the fault that opened the incidents", "recovery from"),
        _PLACE,
        Column("incidents", "Int64", "their number", "n"),
        Column("recovered", "Int64", "those that recovered without harm"),
        Column("by_retry", "Int64", "of these by a retry", "retry"),
        Column("by_fallback", "Int64", "of these by a fallback", "fallback", rare=True),
        Column("late", "Int64", "of these late, but right", "late", rare=True),
        Column("with_harm", "Int64", "those that recovered with harm", "harm", rare=True),
        Column("never", "Int64", "those that never recovered", "never"),
        Column("censored", "Int64", "those of which nobody knows if they would have", "cut short", rare=True),
        Column("mttr_s", "Float64", "the mean time to recovery, of the recovered; missing without one", "mean", "s"),
        Column("mttr_low_s", "Float64", "the low end of its 95 % interval; missing below 8 incidents"),
        Column("mttr_high_s", "Float64", "the high end"),
        Column("detect_s", "Float64", "its part until the fault was noticed, by retry or fallback", "detect", "s"),
        Column("repair_s", "Float64", "its part from there on", "repair", "s"),
        Column("median_s", "Float64", "Kaplan–Meier's median; missing if it is not reached, or of fewer than 8"),
        Column("median_low_s", "Float64", "the low end of its 95 % interval"),
        Column("median_high_s", "Float64", "the high end; missing if it has none"),
    ),
    "latency": (
        _RUN,
        Column("target", "string", "the service or function", "target"),
        Column("met", "boolean", "of the attempts that met a fault, or of the others", "fault", "met"),
        Column("attempts", "Int64", "the attempts with a known duration", "attempts"),
        Column("p50_s", "Float64", "the median of their durations, in seconds", "median", "s"),
        Column("p90_s", "Float64", "the 90th percentile", "90th percentile", "s"),
        Column("p99_s", "Float64", "the 99th percentile", "99th percentile", "s"),
        Column("longest_s", "Float64", "the longest", "longest", "s"),
    ),
    "amplification": (
        _RUN,
        Column("target", "string", "the service or function", "target"),
        Column("requests", "Int64", "the different requests", "requests"),
        Column("attempts", "Int64", "the attempts that were sent", "attempts"),
        Column("factor", "Float64", "attempts per request; 1: none was tried again", "for each request", ".2f"),
        Column("met_factor", "Float64", "the same of requests that met a fault; missing if none did",
               "for each that met a fault", ".2f"),
        Column("most", "Int64", "the most attempts at one request", "most"),
        Column("where", "string", "the trial and request of these", "in"),
        Column("layers", "string", "the further attempts by the layer that made them"),
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
        Column("fault", "string", "the fault that trials met alone, or a row that makes the sum whole", "spent on"),
        Column("added", "boolean", "added by faults to trials, beside the same ones without"),
        Column("trials", "Int64", "the trials of the row", "trials"),
        Column("tokens", "Float64", "tokens to models and from them; missing if not known", "tokens", ",.10g"),
        Column("usd", "Float64", "dollars", "dollars", ".6f"),
        Column("calls", "Float64", "attempts at calls", "calls", ",.10g"),
        Column("effects", "Float64", "lines of ledgers", "effects", ",.10g"),
        Column("seconds", "Float64", "seconds of the world's time", "seconds", ",.2f"),
    ),
    "delivery": (
        _RUN,
        Column("injection", "string", "the injection", "faults"),
        Column("fault", "string", "one of its faults; all: the whole injection", "fault"),
        Column("eligible", "Int64", "the attempts for which its dice were rolled", "eligible"),
        Column("scheduled", "Int64", "those that it was to hit", "scheduled"),
        Column("injected", "Int64", "those that it changed", "injected"),
        Column("witnessed", "Int64", "those whose caller met it", "witnessed"),
        Column("chance", "Float64", "its chance; missing if another trigger says when it hits", "chance", ".3g"),
        Column("plausible", "boolean", "its chance explains the hits; missing if there is nothing to check"),
    ),
    "unmet": (
        _RUN,
        Column("fault", "string", "the fault that was scheduled and not witnessed", "fault"),
        Column("number", "Int64", "how often, for this reason", "number"),
        Column("why", "string", "the reason", "reason"),
    ),
    "failures": (
        _RUN,
        Column("target", "string", "the service or function", "target"),
        Column("number", "Int64", "the attempts that failed so though no fault was witnessed at them", "number"),
        Column("error", "string", "the error, and the faults that their trials had met before", "error"),
    ),
    "warnings": (
        _RUN,
        Column("writer", "string", "the part of the lab", "writer"),
        Column("number", "Int64", "how often", "number"),
        Column("warning", "string", "the warning", "warning"),
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
        Column("objective", "Float64", "the share of trials that should end well (SLO)", "objective", ".1%"),
        Column("judged", "Int64", "the trials that allow a conclusion"),
        Column("well", "Int64", "those that ended well"),
        Column("allowed", "Float64", "the trials that may end badly: its error budget", "may end badly", ".3g"),
        Column("failed", "Int64", "those that did", "did"),
        Column("budget_left", "Float64", "the share of the budget that is left, from 0 to 1", "budget left", "share"),
        Column("burn_rate", "Float64", "the share of bad trials over the allowed one", "burn rate", ".1f"),
        Column("kept", "boolean", "the 95 % interval of the share lies above the objective, or below; else missing",
               "kept"),
    ),
}  # fmt: skip
"""Table → its columns."""
_OWN = frozenset(column.name for column in COLUMNS["runs"])


def extract_settings(run: Mapping[str, Any]) -> dict[str, str]:
    """The settings in a row of the table `runs`."""
    return {name: format_setting_value(value) for name, value in run.items() if name not in _OWN}


def format_setting_value(value: Any) -> str:
    """The value of a setting as a chart and a table have it."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"{value:g}"
    if isinstance(value, str):
        return value
    # A setting of several values is as long as it likes; a digest still tells two runs apart.
    return hash_value(value)[:6] if isinstance(value, dict) else json.dumps(value, ensure_ascii=False, default=str)
