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
from chaoslab.analysis.verdict.ledger import (
    EffectRules,
    Finding,
    FindingKind,
    RecordedEffect,
    describe_repetition_count,
)
from chaoslab.analysis.verdict.seen import TrialEvents, log_line_key
from chaoslab.base.alike import TrialTimeSpan, parse_moments, spell_canonically
from chaoslab.base.identity import REPEATABLE, TOGETHER_S, is_idempotency_key
from chaoslab.core import events
from chaoslab.record.effects import AttemptPlace, find_distinct_effects, make_attempt_finder
from chaoslab.record.history import History
from chaoslab.record.lines import Record

SLACK_S = 0.001
"""The clock of a world may move by less between a stamp and the line that tells of it."""
ID_MARK = "an id that the caller made"

_RANDOM = re.compile(
    r"(?:[A-Za-z]+[-_:])?(?:[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9a-f]{16,}|[0-9A-HJKMNP-TV-Z]{26})", re.I
)
"""A UUID, a ULID or a long number in base 16: an id that nobody counts."""
_REQUEST_ID_FIELDS = frozenset(
    (
        "id",
        "uuid",
        "guid",
        "requestid",
        "clientrequestid",
        "correlationid",
        "traceid",
        "spanid",
        "nonce",
        "clienttoken",
        "requesttoken",
        "operationid",
        "messageid",
        "deduplicationid",
    )
)
"""The fields, without case and signs, in which a request is named and no thing that it is about."""
_TAKES_BACK = re.compile(r"cancel|delete|undo|revoke|void|revert|remove|roll_?back|reverse", re.I)
_NEW_ID = re.compile(r'"(?:id|uuid|\w+_id|\w+Id|\w*reference|\w*number)"\s*:\s*("[^"]+"|\d+)')
_AGAIN = re.compile(r"already|duplicate|replay", re.I)
"""A service's words for a request that it has answered before."""
_TOKEN = "grant_type"
"""The field that makes a request one for an access token (RFC 6749). The next one is as good, and does nothing else."""


@dataclass(frozen=True)
class _AttributedEffect:
    """An effect with the attempt that had it. `nth`: its place among the trial's effects. `made`: the ids that its
    caller seems to have made for it."""

    record: Record
    effect: events.Effect
    nth: int
    made: tuple[str, ...]
    at: AttemptPlace


def find_repeated_requests(trial_events: TrialEvents, history: History, rules: EffectRules) -> list[Finding]:
    """The requests that took effect more than once after a fault took the reply to one of them. One that a later effect
    takes back, or that its service answers as a repeat, is none; nor is one that its caller repeats after a good reply
    too, such as a heartbeat."""
    if not trial_events.find_events(events.FaultWitnessed) or len(trial_events.find_events(events.Effect)) < 2:
        return []
    effects = ledger.compute_net_effects((), find_distinct_effects(trial_events.find_events(events.Effect)), rules)
    names = [pair[1].effect for pair in effects]
    taken_back = [nth for nth, name in enumerate(names) if _TAKES_BACK.search(name)]
    calls = _TrialCalls(trial_events, history)
    groups: dict[str, list[_AttributedEffect]] = {}
    for key, entry in _iterate_repeatable_effects(trial_events, effects, calls):
        groups.setdefault(key, []).append(entry)
    repeated_groups = (group for group in groups.values() if len(group) > 1)
    return [
        finding
        for group in repeated_groups
        if (finding := _build_repeat_finding(_drop_unrelated_effects(trial_events, group, calls), calls, taken_back))
    ]


class _TrialCalls:
    """The ends of a trial's calls and the faults that their callers met, by the places of the attempts."""

    def __init__(self, trial_events: TrialEvents, history: History) -> None:
        trial = trial_events.find_events(events.PromptStarted)[0][0].trial
        self.began_s = {
            _attempt_place(event): record.t for record, event in history.find_events(events.CallStarted, trial=trial)
        }
        self.ends = {_attempt_place(event): event for _, event in trial_events.list_call_ends()}
        self.met = {
            _attempt_place(event): (record, event) for record, event in trial_events.find_events(events.FaultWitnessed)
        }
        self.attempt_of = make_attempt_finder(self.ends.values())

    def has_right_reply(self, at: AttemptPlace) -> bool:
        """True if the caller got the right reply."""
        return at in self.ends and self.ends[at].ok

    def is_retry_of(self, later: AttemptPlace, earlier: AttemptPlace) -> bool:
        """True if an attempt was made because the earlier one gave no reply: it began when that one had ended, or it
        asks again for what is still under way. Equal requests that are made together are no repeats."""
        if later == earlier:  # the fault itself delivered it twice
            return True
        began_s, first_s = self.began_s.get(later), self.began_s.get(earlier)
        if began_s is None or first_s is None or began_s <= first_s:
            return False
        is_retry = later[:2] == earlier[:2] and began_s - first_s >= TOGETHER_S
        # Its end may be noted later than what its caller does next, so only its duration tells when it ended.
        return is_retry or (earlier in self.ends and began_s >= first_s + self.ends[earlier].duration_s - SLACK_S)

    def get_service_reply(self, entry: _AttributedEffect) -> tuple[int, str]:
        """The status and the start of the service's own reply to the request."""
        if entry.effect.reply:
            return int(entry.effect.reply["status"]), str(entry.effect.reply["body"])[: events.REPLY_MAX]
        if entry.at not in self.ends:
            return 0, ""
        end = self.ends[entry.at]
        # A function's result has no status.
        return end.status or HTTPStatus.OK, end.reply


def _attempt_place(event: events.AttemptEvent) -> AttemptPlace:
    return event.target, event.request, event.attempt


def _iterate_repeatable_effects(
    trial_events: TrialEvents, effects: Sequence[RecordedEffect], calls: _TrialCalls
) -> Iterator[tuple[str, _AttributedEffect]]:
    """Each effect whose repetition would be one more, under a text that only equal requests share: the same request but
    for times and the ids that its caller makes."""
    span = _get_trial_time_span(trial_events)
    for nth, (record, effect) in enumerate(effects):
        method, _, path = effect.tool.partition(" ")
        at = calls.attempt_of(effect)
        if method in REPEATABLE or _TOKEN in effect.content or at is None:
            continue
        made_ids: list[str] = []
        # The thing that the path names: an id of /orders may be called order_id.
        noun = _normalize_name(path.rpartition("/")[2] or method).removesuffix("s")
        content = _mask_ids(effect.content, {*_REQUEST_ID_FIELDS, f"{noun}id"}, made_ids)
        content = content if span is None else span.replace_moments(content)
        yield (
            spell_canonically([effect.target, effect.tool, effect.effect, content]),
            _AttributedEffect(record, effect, nth, (*made_ids,), at),
        )


def _mask_ids(content: Mapping[str, Any], names: set[str], made_ids: list[str]) -> dict[str, Any]:
    """The content with one word for all ids that a caller made, which are added to `made_ids`, and without an
    idempotency key. An id that nothing else is in it with is the thing that it is about."""
    masked, is_only_field = dict[str, Any](), len(content) == 1
    for name, value in content.items():
        if is_idempotency_key(name):
            continue
        masked[name] = value
        if isinstance(value, Mapping):
            masked[name] = _mask_ids(value, names, made_ids)
        elif (
            isinstance(value, str) and not is_only_field and _normalize_name(name) in names and _RANDOM.fullmatch(value)
        ):
            made_ids.append(value)
            masked[name] = ID_MARK
    return masked


def _normalize_name(name: str) -> str:
    """A name without case and signs."""
    return re.sub(r"\W|_", "", name).lower()


def _get_trial_time_span(trial_events: TrialEvents) -> TrialTimeSpan | None:
    """The time of the trial; None if its beginning cannot be read."""
    record, _ = trial_events.find_events(events.PromptStarted)[0]
    start = next(iter(parse_moments(record.ts)), None)
    last_t = max(effect_record.t for effect_record, _ in trial_events.find_events(events.Effect))
    return None if start is None else TrialTimeSpan(start - timedelta(seconds=record.t), last_t + SLACK_S)


def _drop_unrelated_effects(
    trial_events: TrialEvents, group: Sequence[_AttributedEffect], calls: _TrialCalls
) -> list[_AttributedEffect]:
    """The effects in the order in which they were asked for, without those that are about something else: an id that
    the prompt or a reply to another call shows is one of a thing that was there before."""
    own_places = {entry.at for entry in group}
    if any(entry.made != group[0].made for entry in group):
        texts = [event.prompt for _, event in trial_events.find_events(events.PromptStarted)]
        texts += [end.reply for at, end in calls.ends.items() if at not in own_places]
        known_text = "\n".join(texts)
        group = [entry for entry in group if not any(value in known_text for value in entry.made)]
    return sorted(group, key=lambda entry: (entry.at, entry.nth))


def _build_repeat_finding(
    group: Sequence[_AttributedEffect], calls: _TrialCalls, taken_back: Sequence[int]
) -> Finding | None:
    distinct = list(group[:1])
    for entry in group[1:]:
        if not _is_answered_as_repeat(
            calls.get_service_reply(distinct[0]), calls.get_service_reply(entry), distinct[0], entry
        ):
            distinct.append(entry)
    lost_entry: _AttributedEffect | None = None
    for earlier_entry, later_entry in pairwise(distinct):
        if _has_any_between(taken_back, earlier_entry.nth, later_entry.nth):
            return None
        is_same_request = earlier_entry.at[:2] == later_entry.at[:2]
        if calls.has_right_reply(earlier_entry.at) and not is_same_request:
            return None  # who asks again after a good reply does so anyway
        if lost_entry is None and earlier_entry.at in calls.met and calls.is_retry_of(later_entry.at, earlier_entry.at):
            lost_entry = earlier_entry
    if lost_entry is None:
        return None
    record, fault = calls.met[lost_entry.at]
    was_delivered_twice = any(entry.at == lost_entry.at for entry in distinct if entry is not lost_entry)
    reason = (
        "it was delivered twice"
        if was_delivered_twice
        else f"its first reply was {_describe_reply_fate(fault.fault, calls, lost_entry.at)}"
    )
    text = f"{lost_entry.effect.effect} took effect {describe_repetition_count(len(distinct))}: {reason}"
    return Finding(
        FindingKind.DUPLICATE, text, (*(log_line_key(entry.record) for entry in distinct), log_line_key(record))
    )


def _has_any_between(numbers: Sequence[int], first: int, last: int) -> bool:
    return bisect(numbers, max(first, last) - 1) > bisect(numbers, min(first, last))


def _describe_reply_fate(fault: str, calls: _TrialCalls, at: AttemptPlace) -> str:
    if traits.can_delay(fault):
        return "late"
    return "unusable" if traits.get_replacement_kind(fault) or (at in calls.ends and calls.ends[at].status) else "lost"


def _is_answered_as_repeat(
    first: tuple[int, str], second: tuple[int, str], first_entry: _AttributedEffect, second_entry: _AttributedEffect
) -> bool:
    """True if a service's second reply says that it had done this before: by its status, in words, or by naming the
    thing that the first reply names, which the request does not."""
    (first_status, first_body), (second_status, second_body) = first, second
    if second_status == HTTPStatus.ALREADY_REPORTED or (
        first_status == HTTPStatus.CREATED and second_status == HTTPStatus.OK
    ):
        return True
    if _AGAIN.search(second_body) and not _AGAIN.search(first_body):
        return True
    request_text = spell_canonically([first_entry.effect.content, second_entry.effect.content])
    new_ids = _find_new_ids(first_body, request_text)
    return bool(new_ids) and new_ids == _find_new_ids(second_body, request_text)


def _find_new_ids(reply: str, request_text: str) -> set[str]:
    """The ids in a reply that are none of the request's."""
    ids: Iterable[str] = _NEW_ID.findall(reply)
    unquoted = reply.strip('"')
    if (
        re.fullmatch(r"[\w.:-]*\d[\w.:-]*", unquoted) and not unquoted.isdigit()
    ):  # the reply of a function is often the id
        ids = [unquoted]
    return {
        new_id
        for new_id in (value.strip('"') for value in ids)
        if not re.search(rf"(?<!\w){re.escape(new_id)}(?!\w)", request_text)
    }
