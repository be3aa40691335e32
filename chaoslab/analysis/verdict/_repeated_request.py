"""Requests that took effect again because a fault took the reply to the first: harm that the log shows by itself,
whatever was stated.

A fault withheld, repeated or delayed the reply to a request that took effect, and its caller made the same request once
more, without the idempotency key of the first. Wherever effects or an end state can be compared, they decide instead:
the right ones may have the request twice as well.
"""

import re
from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from itertools import pairwise
from typing import Any

from chaoslab.analysis.verdict import ledger, traits
from chaoslab.analysis.verdict.ledger import Done, Finding, FindingKind, Rules, how_often
from chaoslab.analysis.verdict.seen import TrialEvents, line
from chaoslab.base.alike import Span, moments, spelt
from chaoslab.base.identity import REPEATABLE, TOGETHER_S, is_idempotency_key
from chaoslab.core import events
from chaoslab.record.effects import AttemptPlace, attempt_finder, find_distinct_effects
from chaoslab.record.history import History
from chaoslab.record.lines import Record

SLACK_S = 0.001
"""The clock of a world may move by less between a stamp and the line that tells of it."""
AN_ID = "an id that the caller made"

_RANDOM = re.compile(
    r"(?:[A-Za-z]+[-_:])?(?:[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9a-f]{16,}|[0-9A-HJKMNP-TV-Z]{26})", re.I
)
"""A UUID, a ULID or a long number in base 16: an id that nobody counts."""
_OF_REQUEST = frozenset(
    ("id", "uuid", "guid", "requestid", "clientrequestid", "correlationid", "traceid", "spanid", "nonce", "clienttoken",
     "requesttoken", "operationid", "messageid", "deduplicationid")
)  # fmt: skip
"""The fields, without case and signs, in which a request is named and no thing that it is about."""
_TAKES_BACK = re.compile(r"cancel|delete|undo|revoke|void|revert|remove|roll_?back|reverse", re.I)
_NEW_ID = re.compile(r'"(?:id|uuid|\w+_id|\w+Id|\w*reference|\w*number)"\s*:\s*("[^"]+"|\d+)')
_AGAIN = re.compile(r"already|duplicate|replay", re.I)
"""A service's words for a request that it has answered before."""
_TOKEN = "grant_type"
"""The field that makes a request one for an access token (RFC 6749). The next one is as good, and does nothing else."""


@dataclass(frozen=True)
class _Taken:
    """An effect with the attempt that had it. `nth`: its place among the trial's effects. `made`: the ids that its
    caller seems to have made for it."""

    record: Record
    effect: events.Effect
    nth: int
    made: tuple[str, ...]
    at: AttemptPlace


def find_repeated_requests(seen: TrialEvents, history: History, rules: Rules) -> list[Finding]:
    """The requests that took effect more than once after a fault took the reply to one of them. One that a later effect
    takes back, or that its service answers as a repeat, is none; nor is one that its caller repeats after a good reply
    too, such as a heartbeat."""
    if not seen.of(events.FaultWitnessed) or len(seen.of(events.Effect)) < 2:
        return []
    done = ledger.net((), find_distinct_effects(seen.of(events.Effect)), rules)
    names = [pair[1].effect for pair in done]
    taken_back = [nth for nth, name in enumerate(names) if _TAKES_BACK.search(name)]
    calls = _Calls(seen, history)
    groups: dict[str, list[_Taken]] = {}
    for key, each in _taken(seen, done, calls):
        groups.setdefault(key, []).append(each)
    several = (group for group in groups.values() if len(group) > 1)
    return [found for group in several if (found := _finding(_apart(seen, group, calls), calls, taken_back))]


class _Calls:
    """The ends of a trial's calls and the faults that their callers met, by the places of the attempts."""

    def __init__(self, seen: TrialEvents, history: History) -> None:
        trial = seen.of(events.PromptStarted)[0][0].trial
        self.began_s = {_place(event): record.t for record, event in history.of(events.CallStarted, trial=trial)}
        self.ends = {_place(event): event for _, event in seen.calls()}
        self.met = {_place(event): (record, event) for record, event in seen.of(events.FaultWitnessed)}
        self.attempt_of = attempt_finder(self.ends.values())

    def answered(self, at: AttemptPlace) -> bool:
        """True if the caller got the right reply."""
        return at in self.ends and self.ends[at].ok

    def follows(self, later: AttemptPlace, earlier: AttemptPlace) -> bool:
        """True if an attempt was made because the earlier one gave no reply: it began when that one had ended, or it
        asks again for what is still under way. Equal requests that are made together are no repeats."""
        if later == earlier:  # the fault itself delivered it twice
            return True
        began_s, first_s = self.began_s.get(later), self.began_s.get(earlier)
        if began_s is None or first_s is None or began_s <= first_s:
            return False
        again = later[:2] == earlier[:2] and began_s - first_s >= TOGETHER_S
        # Its end may be noted later than what its caller does next, so only its duration tells when it ended.
        return again or (earlier in self.ends and began_s >= first_s + self.ends[earlier].duration_s - SLACK_S)

    def reply(self, each: _Taken) -> tuple[int, str]:
        """The status and the start of the service's own reply to the request."""
        if each.effect.reply:
            return int(each.effect.reply["status"]), str(each.effect.reply["body"])[: events.REPLY_MAX]
        if each.at not in self.ends:
            return 0, ""
        end = self.ends[each.at]
        return end.status or HTTPStatus.OK, end.reply


def _place(event: events.AttemptEvent) -> AttemptPlace:
    return event.target, event.request, event.attempt


def _taken(seen: TrialEvents, done: Sequence[Done], calls: _Calls) -> Iterator[tuple[str, _Taken]]:
    """Each effect whose repetition would be one more, under a text that only equal requests share: the same request but
    for times and the ids that its caller makes."""
    span = _span(seen)
    for nth, (record, effect) in enumerate(done):
        method, _, path = effect.tool.partition(" ")
        at = calls.attempt_of(effect)
        if method in REPEATABLE or _TOKEN in effect.content or at is None:
            continue
        made: list[str] = []
        thing = _bare(path.rpartition("/")[2] or method).removesuffix("s")
        content = _unnamed(effect.content, {*_OF_REQUEST, f"{thing}id"}, made)
        content = content if span is None else span.unstamped(content)
        yield spelt([effect.target, effect.tool, effect.effect, content]), _Taken(record, effect, nth, (*made,), at)


def _unnamed(content: Mapping[str, Any], names: set[str], made: list[str]) -> dict[str, Any]:
    """The content with one word for all ids that a caller made, which are added to `made`, and without an idempotency
    key. An id that nothing else is in it with is the thing that it is about."""
    found, alone = dict[str, Any](), len(content) == 1
    for name, value in content.items():
        if is_idempotency_key(name):
            continue
        found[name] = value
        if isinstance(value, Mapping):
            found[name] = _unnamed(value, names, made)
        elif isinstance(value, str) and not alone and _bare(name) in names and _RANDOM.fullmatch(value):
            made.append(value)
            found[name] = AN_ID
    return found


def _bare(name: str) -> str:
    """A name without case and signs."""
    return re.sub(r"\W|_", "", name).lower()


def _span(seen: TrialEvents) -> Span | None:
    """The time of the trial; None if its beginning cannot be read."""
    record, _ = seen.of(events.PromptStarted)[0]
    began = next(iter(moments(record.ts)), None)
    last = max(each.t for each, _ in seen.of(events.Effect))
    return None if began is None else Span(began - timedelta(seconds=record.t), last + SLACK_S)


def _apart(seen: TrialEvents, group: Sequence[_Taken], calls: _Calls) -> list[_Taken]:
    """The effects in the order in which they were asked for, without those that are about something else: an id that
    the prompt or a reply to another call shows is one of a thing that was there before."""
    own = {each.at for each in group}
    if any(each.made != group[0].made for each in group):
        texts = [event.prompt for _, event in seen.of(events.PromptStarted)]
        texts += [end.reply for at, end in calls.ends.items() if at not in own]
        known = "\n".join(texts)
        group = [each for each in group if not any(value in known for value in each.made)]
    return sorted(group, key=lambda each: (each.at, each.nth))


def _finding(group: Sequence[_Taken], calls: _Calls, taken_back: Sequence[int]) -> Finding | None:
    kept = list(group[:1])
    for each in group[1:]:
        if not _is_answered_as_repeat(calls.reply(kept[0]), calls.reply(each), kept[0], each):
            kept.append(each)
    lost: _Taken | None = None
    for one, other in pairwise(kept):
        if _any_between(taken_back, one.nth, other.nth):
            return None
        again = one.at[:2] == other.at[:2]
        if calls.answered(one.at) and not again:
            return None  # who asks again after a good reply does so anyway
        if lost is None and one.at in calls.met and calls.follows(other.at, one.at):
            lost = one
    if lost is None:
        return None
    record, fault = calls.met[lost.at]
    repeated = any(each.at == lost.at for each in kept if each is not lost)
    why = "it was delivered twice" if repeated else f"its first reply was {_fate(fault.fault, calls, lost.at)}"
    text = f"{lost.effect.effect} took effect {how_often(len(kept))}: {why}"
    return Finding(FindingKind.DUPLICATE, text, (*(line(each.record) for each in kept), line(record)))


def _any_between(numbers: Sequence[int], first: int, last: int) -> bool:
    return bisect(numbers, max(first, last) - 1) > bisect(numbers, min(first, last))


def _fate(fault: str, calls: _Calls, at: AttemptPlace) -> str:
    if traits.delays(fault):
        return "late"
    return "unusable" if traits.leaves(fault) or (at in calls.ends and calls.ends[at].status) else "lost"


def _is_answered_as_repeat(
    first: tuple[int, str], second: tuple[int, str], one: _Taken, other: _Taken
) -> bool:  # fmt: skip
    """True if a service's second reply says that it had done this before: by its status, in words, or by naming the
    thing that the first reply names, which the request does not."""
    (status, said), (later, again) = first, second
    if later == HTTPStatus.ALREADY_REPORTED or (status == HTTPStatus.CREATED and later == HTTPStatus.OK):
        return True
    if _AGAIN.search(again) and not _AGAIN.search(said):
        return True
    asked = spelt([one.effect.content, other.effect.content])
    new = _new_ids(said, asked)
    return bool(new) and new == _new_ids(again, asked)


def _new_ids(reply: str, asked: str) -> set[str]:
    """The ids in a reply that are none of the request's."""
    found: Iterable[str] = _NEW_ID.findall(reply)
    bare = reply.strip('"')
    if re.fullmatch(r"[\w.:-]*\d[\w.:-]*", bare) and not bare.isdigit():  # the reply of a function is often the id
        found = [bare]
    return {
        each
        for each in (value.strip('"') for value in found)
        if not re.search(rf"(?<!\w){re.escape(each)}(?!\w)", asked)
    }
