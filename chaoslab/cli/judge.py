"""`chaoslab judge`: a model says what answers say that nothing certain decides."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from chaoslab.base.commandline import LAB_DOWN, RUN_HELP, as_json, filled, print_json, refuse
from chaoslab.base.jsonable import listed

if TYPE_CHECKING:
    from chaoslab.execution.judging import JudgingWanted
    from chaoslab.record.history import History
    from chaoslab.record.spoken import JudgeReply

HELP = "ask a model about the answers that nothing certain decides; its replies are kept beside the log"
EXAMPLE = "chaoslab judge latest --model llama3.1"
NAMED = 4
"""The most trials that a line names."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", default="latest", help=RUN_HELP)
    parser.add_argument("--model", type=filled, metavar="NAME", help="a model of the server at JUDGE_URL (JUDGE_MODEL)")
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
    from chaoslab.execution.judging import JudgingWanted, ModelJudge
    from chaoslab.reports import places

    place = places.find(options.run)
    history = places.read(str(place))
    wanted = JudgingWanted.of(history, place, options.model or "")
    kept = len(wanted.there) - len(wanted.open)
    asked: list[JudgeReply] = []
    requests = 0
    if many := len(wanted.open):
        judge = ModelJudge(Model.named("chaoslab judge", options.model or ""))
        for reply in wanted.ask(judge):
            asked.append(reply)
            if sys.stderr.isatty():
                print(f"\r{len(asked)} of {many} asked", end="\n" if len(asked) == many else "", file=sys.stderr)
        requests = judge.requests
    after = places.read(str(place))
    said: dict[str, Any] = {
        "questions": len(wanted.there),
        "kept": kept,
        "requests": requests,
        **{name: _sum([getattr(each, name) for each in asked if each.reply]) for name in _COSTS},
        "no_opinion": _without(wanted),
        "outcomes": _outcomes(after),
    }
    if options.json:
        print_json(**said, notes=list(after.notes))
    else:
        print(*_told(said, len(wanted.asked), len(history.trials)), sep="\n")
        for note in after.notes:
            print(f"note: {note}", file=sys.stderr)
    return LAB_DOWN if asked and all(each.error for each in asked) else 0


_COSTS = ("tokens_in", "tokens_out", "cost_usd")


def _sum(values: Sequence[Any]) -> Any:
    """The sum; None if one is unknown."""
    return None if None in values else sum(values)


def _without(wanted: JudgingWanted) -> dict[str, list[str]]:
    """The trials without an opinion, by the reason."""
    found: dict[str, list[str]] = {}
    for trial, question in wanted.asked.items():
        reply = wanted.replies.get(question.key)
        if reply is not None and reply.error:
            found.setdefault(reply.error, []).append(trial)
    return found


def _outcomes(history: History) -> dict[str, int]:
    from chaoslab.analysis.verdict.judge import verdicts

    return dict(Counter(str(verdict.outcome) for verdict in verdicts(history).values()))


def _told(said: dict[str, Any], undecided: int, trials: int) -> list[str]:
    """The questions asked, their cost, and what has come of them, in lines."""
    lines = [f"{undecided} of {trials} answers are decided by nothing certain: {said['questions']} different questions"]
    spent = f"{said['requests']} requests"
    if said["requests"]:
        tokens = None if said["tokens_in"] is None else said["tokens_in"] + said["tokens_out"]
        cost = said["cost_usd"]
        spent += f", {'tokens unknown' if tokens is None else f'{tokens:,} tokens'}"
        spent += f", {'dollars unknown' if cost is None else f'${cost:.4f}'}"
    lines.append(f"{said['kept']} replies were kept; {spent}")
    for error, named in said["no_opinion"].items():
        lines.append(f"no opinion of {listed(named, NAMED)}, unknown: {error}")
    lines.append("now: " + ", ".join(f"{count} {name}" for name, count in said["outcomes"].items()))
    return lines
