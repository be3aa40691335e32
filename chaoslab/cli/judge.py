"""`chaoslab judge`: a model says what answers say that nothing certain decides."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from chaoslab.base.commandline import LAB_DOWN, RUN_HELP, as_json, parse_nonempty, print_json, refuse
from chaoslab.base.jsonable import join_some

if TYPE_CHECKING:
    from chaoslab.execution.judging import PendingJudging
    from chaoslab.record.history import History
    from chaoslab.record.spoken import JudgeReply

HELP = "ask a model about the answers that nothing certain decides; its replies are kept beside the log"
EXAMPLE = "chaoslab judge latest --model llama3.1"
NAMED = 4
"""The most trials that a line names."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", default="latest", help=RUN_HELP)
    parser.add_argument(
        "--model", type=parse_nonempty, metavar="NAME", help="a model of the server at JUDGE_URL (JUDGE_MODEL)"
    )
    as_json(parser)


def run(options: argparse.Namespace) -> int:
    from chaoslab.analysis.opinion import Unjudged
    from chaoslab.base.interrupts import heard_outside_imports

    try:
        with heard_outside_imports():
            return _judge(options)
    except (LookupError, OSError, Unjudged) as error:
        return refuse(error)


def _judge(options: argparse.Namespace) -> int:
    from chaoslab.execution.asking import Model
    from chaoslab.execution.judging import ModelJudge, PendingJudging
    from chaoslab.reports import places

    run_place = places.find_run(options.run)
    history = places.read_history(str(run_place))
    judging = PendingJudging.build(history, run_place, options.model or "")
    # What is open is asked; what was asked before is not paid twice.
    kept_count = len(judging.there) - len(judging.open)
    replies: list[JudgeReply] = []
    requests = 0
    if many := len(judging.open):
        judge = ModelJudge(Model.named("chaoslab judge", options.model or ""))
        for reply in judging.ask(judge):
            replies.append(reply)
            # A counter in a log would be a line for each.
            if sys.stderr.isatty():
                print(f"\r{len(replies)} of {many} asked", end="\n" if len(replies) == many else "", file=sys.stderr)
        requests = judge.requests
    # Read anew: the replies are beside the log now.
    after = places.read_history(str(run_place))
    result: dict[str, Any] = {
        "questions": len(judging.there),
        "kept": kept_count,
        "requests": requests,
        **{
            name: _sum_known([getattr(judged_reply, name) for judged_reply in replies if judged_reply.reply])
            for name in _COSTS
        },
        "no_opinion": _group_unanswered(judging),
        "outcomes": _count_outcomes(after),
    }
    if options.json:
        print_json(**result, notes=list(after.notes))
    else:
        print(*_describe_result(result, len(judging.asked), len(history.trials)), sep="\n")
        for note in after.notes:
            print(f"note: {note}", file=sys.stderr)
    # No reply at all: the server is down, or knows no such model.
    return LAB_DOWN if replies and all(judged_reply.error for judged_reply in replies) else 0


_COSTS = ("tokens_in", "tokens_out", "cost_usd")


def _sum_known(values: Sequence[Any]) -> Any:
    """The sum; None if one is unknown."""
    return None if None in values else sum(values)


def _group_unanswered(judging: PendingJudging) -> dict[str, list[str]]:
    """The trials without an opinion, by the reason."""
    trials_by_error: dict[str, list[str]] = {}
    for trial, question in judging.asked.items():
        reply = judging.replies.get(question.key)
        if reply is not None and reply.error:
            trials_by_error.setdefault(reply.error, []).append(trial)
    return trials_by_error


def _count_outcomes(history: History) -> dict[str, int]:
    from chaoslab.analysis.verdict.judge import judge_all

    return dict(Counter(str(verdict.outcome) for verdict in judge_all(history).values()))


def _describe_result(result: dict[str, Any], undecided: int, trials: int) -> list[str]:
    """The questions asked, their cost, and what has come of them, in lines."""
    lines = [
        f"{undecided} of {trials} answers are decided by nothing certain: {result['questions']} different questions"
    ]
    spent = f"{result['requests']} requests"
    if result["requests"]:
        tokens = None if result["tokens_in"] is None else result["tokens_in"] + result["tokens_out"]
        cost = result["cost_usd"]
        spent += f", {'tokens unknown' if tokens is None else f'{tokens:,} tokens'}"
        spent += f", {'dollars unknown' if cost is None else f'${cost:.4f}'}"
    lines.append(f"{result['kept']} replies were kept; {spent}")
    for error, named in result["no_opinion"].items():
        lines.append(f"no opinion of {join_some(named, NAMED)}, unknown: {error}")
    lines.append("now: " + ", ".join(f"{count} {name}" for name, count in result["outcomes"].items()))
    return lines
