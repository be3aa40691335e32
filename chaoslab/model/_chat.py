"""The offline chat model: a pure function from the conversation and the offered tools to the next reply.

It keeps no state between calls. Each time it plans the steps of the last request and replays them against the tools'
answers so far. It asks for the missing answers, independent ones together. A failed call is repeated once with the same
arguments; after that its step must find another way or report that it could not.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from importlib import import_module
from typing import Any

from chaoslab.base.json_text import make_json_writer
from chaoslab.model import _dates
from chaoslab.model._choosing import KINDS, OfferedTool, choose_tool, make_tool_catalogue, map_slots_to_parameters
from chaoslab.model._story import Ask, CouldNot, Draft, Step, StepResult, make_statement_step


def parse_tool_result(content: str, status: str | None = None) -> tuple[Any, str | None]:
    """The reply's value, and the reason if it reports a failure (fit for the end of a sentence)."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        value = content
    # Frameworks put a tool's exception into such words; LangChain's messages have a status besides.
    if status == "error" or re.match(r"\s*(?:Error|Exception|Traceback|Failed)\b", content):
        return value, _extract_error_text(content)
    if not content.strip():
        return value, "the tool answered nothing"
    if isinstance(value, Mapping) and _is_service_refusal(value):
        return value, _extract_error_text(value)
    return value, None


def _is_service_refusal(value: Mapping[str, Any]) -> bool:
    """True if the value has the form in which a service refuses. A search without results also has "error", but is no
    failure."""
    if "search_information" in value or "organic_results" in value:
        return False
    # OpenWeatherMap has the status of an error here, as a number or as a text.
    code = str(value.get("cod", ""))
    # `ok` is Slack's, `success` TMDB's.
    refused = value.get("ok") is False or value.get("success") is False or bool(re.fullmatch(r"[45]\d\d", code))
    return refused or (bool(value.get("error")) and "result" not in value)


def _extract_error_text(value: Any) -> str:
    if isinstance(value, Mapping):
        inner = value.get("error") or value.get("message") or value.get("status_message") or value
        value = inner.get("message", inner) if isinstance(inner, Mapping) else inner
    # A client may put words of its own before the JSON of the service's error.
    elif str(value).rstrip().endswith("}"):
        before, bracket, rest = str(value).partition("{")
        try:
            inside = json.loads(bracket + rest)
        except (ValueError, RecursionError):
            inside = None
        if isinstance(inside, Mapping):
            value = f"{before}{_extract_error_text(inside)}"
    # The sentence about the failure says already that it is one.
    text = re.sub(r"^\s*(?:Error|Exception)\b[\s:]*", "", str(value)).strip()
    # From the start of a run of dots and spaces only, and without going back: else a long run would take quadratic
    # time.
    return re.sub(r"(?<![\s.])[\s.]++$", "", text.splitlines()[0] if text else "no reason was given")


ATTEMPTS = 2
BEYOND = "the calendar ends before that"
# Before there was a bound, 20,000 digits kept the rules busy for 88 s.
REQUEST_MAX = 4000
"""The most characters of a request: each of the many rules for reading goes over all of them."""


@dataclass(frozen=True)
class ToolCall:
    """A call of an offered tool, as in OpenAI's format."""

    id: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class ChatReply:
    """The model's reply: text, or calls. `finish`: "length" if it had to end for its length; `stopped_by`: the text of
    the request before which it ended; `answers`: as many equal replies were asked for."""

    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    finish: str = ""
    stopped_by: str = ""
    answers: int = 1


@dataclass
class _Turn:
    """One replay: the tools' answers, the calls still wanted, and the outcomes of the steps."""

    answered: Mapping[tuple[str, str], Sequence[tuple[Any, str | None]]]
    offers: tuple[OfferedTool, ...]
    wanted: dict[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    outcomes: dict[int, StepResult | CouldNot] = field(default_factory=dict)


@dataclass(frozen=True)
class _Skipped(StepResult):
    """The outcome of a step whose condition is false. `words`: the condition; empty if the answer need not tell."""

    words: str = ""


class _Waiting(Exception):
    """A step cannot go on before a tool answers."""


def load_reading_rules() -> None:
    """Loads the rules for reading, which take 50 ms: who only passes replies on does without them."""
    import_module("chaoslab.model._planning")


def answer_conversation(
    messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None = None
) -> ChatReply:
    """The reply to a conversation in OpenAI's format; equal input gives an equal reply."""
    return answer_with_offered_tools(messages, make_tool_catalogue(tools).offers)


def answer_with_offered_tools(messages: Sequence[Mapping[str, Any]], offers: tuple[OfferedTool, ...]) -> ChatReply:
    """The same, for tools that are parsed already."""
    request_index = find_last_user_index(messages)
    if request_index is None:
        return ChatReply(_render_lost_request_reply(messages))
    request = extract_message_text(messages[request_index])
    if not request.strip():
        return ChatReply("The request is empty.")
    system = "\n".join(
        extract_message_text(message) for message in messages if message.get("role") in ("system", "developer")
    )
    earlier = [
        extract_message_text(message) for message in messages[:request_index] if message.get("role") == "assistant"
    ]
    # The last answer that has words: one of calls alone gives “it” no meaning.
    draft = _plan_request(
        request, offers, _dates.parse_today_line(system), next((text for text in reversed(earlier) if text), "")
    )
    turn = _Turn(_collect_tool_answers(messages[request_index + 1 :]), draft.offers)
    for number, step in enumerate(draft.steps):
        try:
            turn.outcomes[number] = _run_step(step, turn, draft.steps)
        except CouldNot as reason:
            turn.outcomes[number] = reason
        # Dates end with the year 9999.
        except OverflowError:
            turn.outcomes[number] = CouldNot(BEYOND)
        except _Waiting:
            continue
    if turn.wanted:
        return ChatReply(
            "",
            tuple(
                _make_tool_call(name, arguments, turn, len(messages)) for (name, _), arguments in turn.wanted.items()
            ),
        )
    return ChatReply(_compose_sentences(draft, turn) or "I do not know what to do with that.")


def find_last_user_index(messages: Sequence[Mapping[str, Any]]) -> int | None:
    """The index of the message with the request; None if there is none."""
    return max((n for n, message in enumerate(messages) if message.get("role") == "user"), default=None)


@lru_cache(256)
def _plan_request(request: str, offered: tuple[OfferedTool, ...], now: datetime | None, earlier: str) -> Draft:
    """The plan of a request, the same at each turn of a conversation; running the steps does not change them."""
    from chaoslab.model import _planning

    draft = Draft(offered, now, earlier=earlier)
    try:
        _planning.plan_steps(request, draft)
    except OverflowError:
        draft.steps[:] = [make_statement_step(f"I did nothing, since {BEYOND}.")]
    return draft


def _render_lost_request_reply(messages: Sequence[Mapping[str, Any]]) -> str:
    """The reply if the request itself is missing: it states that, and the calls still visible."""
    calls = [
        f"{name} with {arguments}"
        for (name, arguments), replies in _collect_tool_answers(messages).items()
        if any(failure is None for _, failure in replies)
    ]
    calls_text = f" I still see that I called {'; '.join(calls)}." if calls else ""
    return f"I could not finish what was asked: the request is no longer in what I was sent.{calls_text}"


def extract_message_text(message: Mapping[str, Any]) -> str:
    """A message's text, also if its content comes in parts."""
    content = message.get("content")
    if isinstance(content, list):
        return "".join(str(piece.get("text", "")) for piece in content if isinstance(piece, Mapping))
    return content if isinstance(content, str) else ""


def find_failed_tool(messages: Sequence[Mapping[str, Any]]) -> str:
    """The name of the first tool whose answer since the model's last message tells of a failure; empty if none does."""
    model_turns = [at for at, message in enumerate(messages) if message.get("role") == "assistant"]
    # Since the model's last turn alone: an older failure has had its answer.
    answered = _collect_tool_answers(messages[model_turns[-1] :]) if model_turns else {}
    return next((name for (name, _), replies in answered.items() if any(map(_is_failed_tool_answer, replies))), "")


# Most agents and frameworks put a failure into words of their own, as in "An error occurred while running the tool".
# “no errors” and “0 failed” tell of none.
_FAILURE = re.compile(
    r"(?i)(?<!\bno )(?<!\b0 )\b(?:errors?|exception|traceback|fail(?:ed|ure|s)?|timed?[ -]?out|could ?n[o']t|can ?not"
    r"|can't|unable|unavailable|refused|denied|forbidden|unauthori[sz]ed|invalid|not (?:found|known)|too many requests"
    r"|rate limit\w*|does not answer|connection (?:reset|closed)|disconnected)\b|<!doctype|<html"
)
_HEADLINE = 80
"""The characters of an answer that tell what it is."""


def _is_failed_tool_answer(answer: tuple[Any, str | None]) -> bool:
    value, error = answer
    if isinstance(value, Mapping):
        return bool(error) or value.get("status") in ("error", "failed")
    # The beginning alone: a document may speak of errors further on.
    return bool(error) or (isinstance(value, str) and _FAILURE.search(value[:_HEADLINE]) is not None)


def _collect_tool_answers(messages: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], list[tuple[Any, str | None]]]:
    """The tools' answers since the request, by name and arguments, in order."""
    called: dict[str, tuple[str, str]] = {}
    answers: dict[tuple[str, str], list[tuple[Any, str | None]]] = {}
    for message in messages:
        for call in message.get("tool_calls") or ():
            function = call.get("function") or {}
            try:
                arguments = json.loads(function.get("arguments") or "{}")
            except (ValueError, RecursionError):
                arguments = {}
            called[str(call.get("id"))] = (str(function.get("name")), _make_arguments_key(arguments))
        if message.get("role") == "tool" and (key := called.get(str(message.get("tool_call_id")))):
            answers.setdefault(key, []).append(parse_tool_result(extract_message_text(message), message.get("status")))
    return answers


def _make_arguments_key(arguments: Any) -> str:
    return _spelt(arguments)


# Sorted, since a client may send the arguments of a call back in another order.
_spelt = make_json_writer(sort_keys=True)


def _run_step(step: Step, turn: _Turn, steps: Sequence[Step]) -> StepResult:
    """Runs the step's story as far as the answers allow."""
    if step.only_if is not None:
        under = step.only_if
        outcomes = [_get_step_outcome(number, turn) for number in under.steps]
        settled = [outcome for outcome in outcomes if isinstance(outcome, StepResult)]
        # A lookup that failed says neither yes nor no.
        if len(settled) < len(outcomes):
            raise CouldNot(f"I do not know whether {under.words}")
        if not under.is_met_by(settled):
            return _Skipped("", words="" if under.otherwise or not step.label else under.words)
    needed = []
    for number in step.needs:
        outcome = _get_step_outcome(number, turn)
        if isinstance(outcome, CouldNot):
            raise CouldNot(f"it needs the result of another step ({steps[number].label}) that failed")
        needed.append(outcome)
    story = step.act(needed)
    try:
        wish = next(story)
        while True:
            try:
                reply = _get_tool_reply(wish, turn)
            except CouldNot as why:
                wish = story.throw(why)
            else:
                wish = story.send(reply)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


def _get_step_outcome(number: int, turn: _Turn) -> StepResult | CouldNot:
    if number not in turn.outcomes:
        raise _Waiting
    return turn.outcomes[number]


def _get_tool_reply(wish: Ask, turn: _Turn) -> Any:
    """The tool's answer to a request; records the call as wanted if there is none yet."""
    if wish.tool:
        name, arguments = wish.tool, dict(wish.slots)
    else:
        offer = choose_tool(wish.kind, turn.offers)
        if offer is None:
            raise CouldNot("I have no tool for that")
        name, arguments = offer.name, _to_tool_arguments(offer, wish)
    answers = turn.answered.get((name, _make_arguments_key(arguments)), ())
    good = next((value for value, failure in answers if failure is None), None)
    if good is not None:
        return good
    if len(answers) >= ATTEMPTS:
        raise CouldNot(answers[-1][1] or "the tool failed")
    # Two steps may want the same call, which is made once.
    turn.wanted.setdefault((name, _make_arguments_key(arguments)), arguments)
    raise _Waiting


def _to_tool_arguments(offer: OfferedTool, wish: Ask) -> dict[str, Any]:
    """The slots under the tool's own parameter names; slots that it does not take are left out."""
    names = map_slots_to_parameters(offer, KINDS[wish.kind])
    return {names[slot]: value for slot, value in wish.slots.items() if slot in names}


def _make_tool_call(name: str, arguments: Mapping[str, Any], turn: _Turn, length: int) -> ToolCall:
    """A call with an id that is a hash of its content and its place in the conversation."""
    # With the tries and the place: a call that is made again needs another id, since some providers refuse one id
    # twice.
    tries = len(turn.answered.get((name, _make_arguments_key(arguments)), ()))
    digest = hashlib.blake2s(
        f"{name}|{_make_arguments_key(arguments)}|{tries}|{length}".encode(), digest_size=8
    ).hexdigest()
    return ToolCall(f"call_{digest}", name, arguments)


def _compose_sentences(draft: Draft, turn: _Turn) -> str:
    """One sentence per step, in the order asked; a failure is reported with its reason. No sentence denies what another
    step did in the same words."""
    done_labels = {
        step.label
        for number, step in enumerate(draft.steps)
        if not isinstance(turn.outcomes[number], CouldNot | _Skipped)
    }
    parts = []
    for number, step in enumerate(draft.steps):
        outcome, once = turn.outcomes[number], step.label not in done_labels
        if isinstance(outcome, CouldNot):
            parts.append(f"I could not {step.label}{'' if once else ' in one case'}: {outcome}.")
        elif isinstance(outcome, _Skipped):
            if outcome.words and once:
                parts.append(f"As it is not the case that {outcome.words}, I did not {step.label}.")
            elif outcome.words:
                parts.append(f"It is false that {outcome.words}.")  # a "not" could be read as an admission
        elif outcome.sentence:
            parts.append(outcome.sentence)
    # Two steps may end in the same sentence, which is said once.
    return " ".join(dict.fromkeys(parts))
