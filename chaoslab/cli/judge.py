"""`chaoslab judge`: a model says what answers say of which only words would tell."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from chaoslab.base.commandline import LAB_DOWN, RUN_HELP, as_json, filled, print_json, refuse, typed
from chaoslab.base.jsonable import listed
from chaoslab.base.parsers import bounded

if TYPE_CHECKING:
    from chaoslab.execution.judging import JudgingWanted
    from chaoslab.record.history import History
    from chaoslab.record.spoken import JudgeReply

HELP = "ask a model about the answers that only their words would judge; its replies are kept beside the log"
EXAMPLE = "chaoslab judge latest --model llama3.1"
NAMED = 4
"""The most trials that a line names."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", default="latest", help=RUN_HELP)
    parser.add_argument("--model", type=filled, metavar="NAME", help="a model of the server at JUDGE_URL (JUDGE_MODEL)")
    parser.add_argument(
        "--against-labels", action="store_true", help="tell how far it agrees with the labels of 'chaoslab label'"
    )
    parser.add_argument(
        "--certain-above",
        type=_share,
        metavar="SHARE",
        help="its verdicts count as certain if the agreement's 95 %% interval lies above this share, as in 0.9",
    )
    as_json(parser)


@typed
def _share(text: str) -> float:
    share = bounded(text, 0.0, 1.0, what := "a share from 0 to below 1, as in 0.9")
    if share == 1:
        raise ValueError(what)
    return share


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
    against = options.against_labels or options.certain_above is not None
    if against and not history.spoken.labels:
        raise LookupError(f"this run has no labels: 'chaoslab label {options.run}' makes some")
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
    of_run = _against(wanted, history, options.certain_above) if against else None
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
        print_json(**said, **({"agreement": of_run[1]} if of_run else {}), notes=list(after.notes))
    else:
        print(*_told(said, len(wanted.asked), len(history.trials)), sep="\n")
        print(*(of_run[0] if of_run else ()), sep="\n", end="\n" if of_run else "")
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

    return dict(Counter(verdict.name for verdict in verdicts(history).values()))


def _told(said: dict[str, Any], on_words: int, trials: int) -> list[str]:
    """The questions asked, their cost, and what has come of them, in lines."""
    lines = [f"{on_words} of {trials} verdicts rest on words: {said['questions']} different questions"]
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


def _against(wanted: JudgingWanted, history: History, certain_above: float | None) -> tuple[list[str], dict[str, Any]]:
    """The agreement with the labels, in lines and as data. It is kept if the verdicts may count as certain."""
    from chaoslab.analysis.measures.agreement import agreement
    from chaoslab.record.spoken import OPINIONS, KeptReplies, Trust, keep
    from chaoslab.reports import labelling as shown

    replies = {key: each for key in wanted.there if (each := wanted.replies.get(key)) is not None}
    models = sorted({each.model for each in replies.values()})
    if len(models) > 1:
        raise LookupError(f"the replies are of several models ({', '.join(models)[:200]}): name one with --model")
    found = agreement(history, history.spoken, replies)
    model = models[0] if models else "the model"
    if certain_above is not None and (share := found.share) is not None:
        kept = KeptReplies.read(wanted.folder)
        given = kept.given(history.run)
        trust = Trust(model, certain_above, share.interval.low, share.count, len(found.pairs), given)
        if trust != kept.trust:
            keep(wanted.folder, OPINIONS, **vars(trust))
    return [*shown.agreement_lines(found, model, certain_above)], shown.plain(found, certain_above)
