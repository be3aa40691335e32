"""Messages: sent with words that are given, asked for or found before."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from chaoslab.model._reading import QUOTE, strip_politeness
from chaoslab.model._story import Ask, CouldNot, Draft, Step, StepResult, Story
from chaoslab.model.skills import calculate, inbox, movies, search, translate, weather
from chaoslab.model.skills import calendar as events

_ONE = (
    r"(?:[#@][\w-]+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+|(?!I\b)[A-ZÀ-Þ][\w'’-]*(?: (?!I\b)[A-ZÀ-Þ][\w'’-]*)?|(?i:her|him"
    r"|them|everyone|everybody)\b|"
    r"(?i:my|the|our) (?i:\w+ )?(?i:team|channel|boss|manager|wife|husband|mother|father|mom|"
    r"mum|dad|sister|brother|friend|group|colleagues?|landlord|doctor|assistant)\b)"
)
_WHO = rf"(?P<to>{_ONE}(?:(?:\s*,\s*and\s+|\s*,\s*|\s+and\s+|\s*&\s*)(?:to\s+)?{_ONE})*)"
_LOWER = (
    r"(?P<to>(?!(?:me|us|you|it|that|this|a|an|the|him|her|if|whether|what|all|my|to|about|when|i|saying"
    r"|them)\b)[a-zà-ÿ][\w-]*)"
)
_DIRECT = (
    r"(?i:wish|reply|respond|answer|write back|send|write|drop|shoot|text|message|tell|notify|inform|"
    r"ping|dm|e-?mail|remind|warn|ask|let|give|update)"
)
_MOVED = (
    r"(?i:wish|send|write|drop|shoot|text|message|e-?mail|post|share|forward|pass|put|report|announce|say|give|dm"
    r"|relay|deliver|leave)"
)
_PATTERNS = (
    re.compile(
        rf"^(?P<verb>{_DIRECT})\s+(?:to\s+)?(?!(?i:them)\s+to\s+[A-ZÀ-Þ#@]){_WHO}(?P<rest>(?:[\s,:].*|{QUOTE}.*)?)$"
    ),
    re.compile(
        rf"^(?P<verb>{_MOVED})\s+(?P<what>.*?)\s*\b(?i:to|with|(?:in|on|into|for)(?=\s+(?:the\s+)?(?:#|"
        rf"(?:my|our|the)\b)))\s+(?:(?i:the\s+)(?=#))?{_WHO}(?P<rest>.*)$"
    ),
    re.compile(
        r"^(?P<verb>(?i:tell|message|text|ping|notify|dm|inform|email"
        rf"|let(?=\s+\w+\s+know\b)))\s+{_LOWER}\b(?P<rest>.*)$"
    ),
    re.compile(
        rf"^(?P<verb>{_MOVED})\s+(?P<what>(?i:it|that|this|the result|the answer|an? (?:message|note|"
        rf"text)|{QUOTE}|.*{QUOTE}))\s*\b(?i:to)\s+{_LOWER}\b(?P<rest>.*)$"
    ),
)
_LEAD = re.compile(
    r"^(?:[\s,:]+|(?:an?|the|this|my|following|short|quick|another)\s+(?=(?:\w+ "
    r")?(?:message|text|note|dm|sms|reminder|line|words?|e-?mail)\b)|"
    r"(?:quick |short |following )?(?:message|text|note|dm|sms|reminder|line|e-?mail)s?\b(?!\s+from)|"
    r"(?:saying|that says|which says|to say|that reads|reading|with the (?:text|message|words)|"
    r"with|containing|know|to (?:let (?:her|him|them) know|tell (?:her|him|them))|telling (?:her|"
    r"him|them))(?: that)?\b|that\b(?=\s+\S))",
    re.I,
)
_REFERS = re.compile(
    r"^(?:(?:about|of|with|all|both) )*(?:(?:when|where|what|how \w+) (?:it|that|they|he|she) "
    r"(?:is|are|was|were|starts?|begins?|costs?)|it|that|this|them|both|all(?: of (?:it|them|that))?|"
    r"everything|those|these|what (?:you|it|she|he|they|i)\b.*|whatever you find|how many\b.*|how it (?:went|is|looks)|"
    r"either way|(?:whether|if) (?:s?he|they|i|we) (?:needs?|should)\b.*|"
    r"(?:what|which) year (?:it|that|they) .*|(?:when|how) (?:it|that) (?:was|is|came|comes)\b.*|"
    r"(?:the |its |your )?(?:\w+ )?(?:results?|answers?|outcome|translations?|sum|total|difference|explanation"
    r"|definition|"
    r"average|product|number|weather|forecast|temperatures?|titles?|list|summary|details|"
    r"findings?|snippet|conditions|events?|times?|news|rating|release year|year|movies?|films?|"
    r"schedule|info|information|translated (?:text|message|version)|first (?:result|hit|one)|"
    r"top (?:result|hit)|best (?:result|hit)|reply|comparison))$",
    re.I,
)
_ASKS = re.compile(
    r"^(?:(?:about )?(?:what|how|when|which|who)\b|(?:about )?the (?:current |latest )?(?:weather|"
    r"temperatures?|forecast|result|sum|product|answer|difference|square root|plot|rating|release (?:year|date)|events|"
    r"schedule|average)\b|"
    r"about the (?:movie|film)\b|"
    r"(?:the list of )?(?:all )?my (?:schedule|agenda|calendar|events|meetings|appointments)|whether it "
    r"(?:is|will)|if it (?:is|will))",
    re.I,
)


_ITS_MESSAGE = re.compile(r"(?:(?:the|my|all) )?(?:\w+ ){0,2}messages?\b.* from\b|[A-ZÀ-Þ]\w*['’]s (?:\w+ )?messages?$")


_TO_LATEST = re.compile(
    rf"^(?:reply|respond|answer)(?: to)? (?:the|my) (?:latest|last|newest|most recent) (?:message|text|one)\s*,?\s*"
    rf"(?P<rest>(?:(?:with|saying|by saying)\b\s*.+|{QUOTE}))$",
    re.I,
)
_SAYS = rf"(?:\s*,?\s*{QUOTE}|\s+(?:that|to)\b)"
_AND_ANOTHER = re.compile(
    rf"^(?P<verb>{_DIRECT}|{_MOVED})(?P<first>\s+(?:to\s+)?{_ONE}{_SAYS}.*?|\s+{QUOTE}\s+to\s+{_ONE})"
    rf"(?:\s*,\s*and\s+|\s+and\s+|\s*,\s*)(?P<second>(?:to\s+)?{_ONE}{_SAYS}.*|{QUOTE}\s+to\s+{_ONE}.*)$"
)


def plan_clause(clause: str, draft: Draft) -> bool:
    if pair := _AND_ANOTHER.match(clause):
        first = plan_clause(f"{pair['verb']}{pair['first']}", draft)
        return plan_clause(f"{pair['verb']} {pair['second']}", draft) and first
    if draft.person and re.match(rf"(?:reply|respond|answer)\s+(?:with\s+)?(?:{QUOTE}|saying\b)", clause, re.I):
        clause = re.sub(r"^\w+(?:\s+with)?", f"reply to {draft.person}", clause)
    if latest := _TO_LATEST.match(clause):
        draft.add_step(
            Step(
                "reply to the latest message",
                _make_reply_story(draft.restore_quotes(_strip_lead_words(latest["rest"]))),
            )
        )
        return True
    clause = re.sub(r"\bboth (?=[A-ZÀ-Þ#@])", "", clause)
    clause = re.sub(r"\b(?:everyone|everybody|people|folks|all) (?:in|on) (?:the )?(?=#)", "", clause, flags=re.I)
    if kind := re.match(
        rf"(?P<verb>(?i:thank|congratulate|apologi[sz]e to))\s+{_WHO}(?P<rest>\s+(?:for|on)\b.*)$", clause
    ):
        opening = {"t": "Thank you", "c": "Congratulations", "a": "I am sorry"}[kind["verb"][0].lower()]
        clause = f"tell {kind['to']} that {opening}{kind['rest']}"
    if re.match(r"(?:tell|give|show|let|send) (?:me|us)\b|tell .* apart", clause, re.I):
        return False
    match = next((pattern_match for pattern in _PATTERNS if (pattern_match := pattern.match(clause))), None)
    if match is None or re.match(r"(?:what|read|show|list)\b", clause, re.I):
        return False
    groups = match.groupdict()
    content, rest = (groups.get("what") or "").strip(), (groups.get("rest") or "").strip()
    verb = groups["verb"].lower()
    if verb == "say" and re.fullmatch(
        r"hello|hi|hey|goodbye|good (?:morning|night)|thanks?(?: you)?|congratulations", content, re.I
    ):
        content = f"saying {content}"
    elif verb in ("say", "wish") and (language := _find_closing_language(rest)) and content:
        content, rest = f"saying {content}", f"in {language}"
    elif verb == "write" and re.match(r"write\s+to\b", clause, re.I):
        pass
    elif verb in ("say", "put", "give", "write", "leave") and not re.search(
        rf"{QUOTE}|\b(?:it|that|this|result|message|note|answer|them)\b", f"{content} {rest}", re.I
    ):
        return False
    if re.match(r"(?:translate|translation)\b", content, re.I):
        return False
    people = _split_recipients(groups["to"], draft)
    content = re.sub(r"^(it|them|that|this|those)\s+(?:on|over|along)$", r"\1", content, flags=re.I)
    content = re.sub(r"\s+(?:in|into|as)\s+an? (?:\w+ )?(?:message|note|text|dm)$", "", content, flags=re.I)
    body = _strip_lead_words(content) or _strip_lead_words(rest)
    # “Tell Ana that the weather is bad” dictates the words; “tell Ana the weather” asks for them.
    literally = re.match(r"\W*that\s+(?!(?:is|was|to|too)\b)\w", rest, re.I) is not None
    foreign = re.match(rf"in ({'|'.join(translate.LANGUAGES)})\b[\s,:]*(?:that\s+)?(?=\S)", rest, re.I)
    rest = f"{rest[foreign.end() :]} in {foreign[1]}" if foreign else rest
    body = _strip_lead_words(rest) if foreign else body
    spoken = (
        _find_closing_language(rest)
        if foreign or content or re.search(QUOTE, rest) or re.match(r"an? ", body, re.I)
        else ""
    )
    spoken = "" if re.match(r"(?:the )?translation\b", body, re.I) else spoken
    if spoken:
        body = re.sub(rf"\s*\bin {spoken}$", "", body, flags=re.I)
    if verb == "let":
        body = re.sub(r"^know\b\s*", "", rest, flags=re.I)
        body = _strip_lead_words(body)
    needs, literal = _resolve_message_body(
        body, verb, draft, quoted=re.search(QUOTE, content + rest), literally=literally
    )
    if not needs and not literal and (draft.last or draft.earlier):
        needs, literal = draft.last, "" if draft.last else draft.earlier
    if spoken:
        step = Step(
            f"translate that to {spoken}", translate.make_translation_story(literal, "", spoken), needs, "translate"
        )
        draft.last = needs = (draft.add_step(step),)
    for person in people:
        draft.add_step(Step(f"send a message to {person}", _make_send_story(person, literal, body), needs))
    draft.person = people[-1]
    return True


def _make_reply_story(text: str) -> Any:
    """A story that replies to the sender of the latest message."""

    def reply_to_latest(_: Sequence[StepResult]) -> Story:
        inbox_reply = yield Ask("read", {"limit": 1})
        messages = inbox_reply.get("messages") if isinstance(inbox_reply, Mapping) else None
        sender = messages[0].get("user") if isinstance(messages, list) and messages else None
        if not sender:
            raise CouldNot("there is no message")
        return (yield from _make_send_story(str(sender), text, "")(()))  # type: ignore[no-any-return]

    return reply_to_latest


def _find_closing_language(text: str) -> str:
    """The language of a closing "in French"."""
    match = re.search(rf"\bin ({'|'.join(translate.LANGUAGES)})$", text, re.I)
    return match[1] if match else ""


def _split_recipients(named: str, draft: Draft) -> list[str]:
    people = []
    for person in re.split(r"\s*,\s*and\s+(?:to\s+)?|\s*,\s*(?:to\s+)?|\s+and\s+(?:to\s+)?|\s*&\s*", named):
        if person.lower() in ("her", "him", "them") and draft.person:
            person = draft.person
        people.append(re.sub(r"^(?:the|my|our)\s+(?=\S)", "", re.sub(r"['’]s$", "", person), flags=re.I))
    # A person who is named twice gets one message.
    return list(dict.fromkeys(people))


def _strip_lead_words(text: str) -> str:
    while (shorter := _LEAD.sub("", text, count=1).strip()) != text:
        text = shorter
    return text


def _resolve_message_body(
    body: str, verb: str, draft: Draft, *, quoted: re.Match[str] | None, literally: bool
) -> tuple[tuple[int, ...], str]:
    """The message's content: the steps whose findings it passes on, or its own words."""
    if quoted and re.match(r"(?:the )?translation of\b", body, re.I):
        translate.plan_clause(body, draft)
        return draft.last, ""
    if quoted:
        return (), draft.restore_quotes(quoted[0])
    if not body:
        return (), ""
    if _REFERS.match(body) and (draft.last or draft.earlier):
        everything = re.match(
            r"(?:about |of )?(?:both|all|everything|the results|what you find|them|those|these)\b", body, re.I
        )
        telling = tuple(n for n, step in enumerate(draft.steps) if step.topic)
        return (telling if everything else draft.last), "" if draft.last else draft.earlier
    # The mere words "the explanation" are no message.
    forward_verb = verb in ("send", "forward", "share", "pass", "post", "email", "relay") and draft.last
    if forward_verb and re.fullmatch(r"(?:the|its|their) (?:\w+ )?\w+(?<!ed)", body, re.I):
        return draft.last, ""
    if not literally and verb != "ask" and _ASKS.match(body) and (nested := _plan_nested_clause(body, draft)):
        return nested, ""
    if _ITS_MESSAGE.match(body) and inbox.plan_clause(body, draft):
        return draft.last, ""
    if wish := re.fullmatch(r"an? (.+) (?:message|note|text|wish)", body, re.I):
        return (), draft.restore_quotes(wish[1][:1].upper() + wish[1][1:])
    if verb == "remind" and (match := re.match(r"(?:about|of) ", body, re.I)):
        return (), draft.restore_quotes(f"Please remember {body[match.end() :]}")
    if verb == "ask":
        if match := re.match(
            r"(?:if|whether) (?:s?he|they) (is|are|can|could|will|would|has|have|wants?|needs?|likes?)\b(.*)",
            body,
            re.I,
        ):
            helper = {"is": "Are you", "has": "Have you", "have": "Have you"}.get(
                match[1].lower(), f"{match[1].capitalize()} you"
            )
            helper = (
                f"Do you {match[1].lower().rstrip('s')}"
                if match[1].lower() in ("want", "wants", "need", "needs", "like", "likes")
                else helper
            )
            return (), draft.restore_quotes(f"{helper}{match[2]}?")
        if re.match(r"(?:what|how|when|where|who|which|why)\b", body, re.I):
            return (), draft.restore_quotes(body[0].upper() + body[1:] + "?")
    if verb in ("ask", "tell", "remind", "message", "text", "email") and (
        match := re.match(r"(not )?to (?=\w+)", body, re.I)
    ):
        start = "Please do not " if match[1] else "Please "
        return (), draft.restore_quotes(start + body[match.end() :])
    return (), draft.restore_quotes(body[:1].upper() + body[1:])


def _plan_nested_clause(body: str, draft: Draft) -> tuple[int, ...]:
    before, clause = len(draft.steps), re.sub(r"^about ", "", strip_politeness(body), flags=re.I)
    clause = re.sub(r"^(?:whether|if) it ", "is it ", clause, flags=re.I)
    if any(
        skill(clause, draft)
        for skill in (
            calculate.plan_clause,
            translate.plan_clause,
            weather.plan_clause,
            movies.plan_clause,
            events.plan_clause,
            search.plan_question,
        )
    ):
        return draft.last if len(draft.steps) > before else ()
    return ()


def _make_send_story(person: str, literal: str, body: str) -> Any:
    def send_message(results: Sequence[StepResult]) -> Story:
        text = literal
        if results:
            first = re.match(r"(?:the )?(?:first|top|best|latest|last|newest)\b", body, re.I) and results[0].items
            text = (
                results[0].items[0]
                if first
                else _pick_asked_detail(results, body) or " ".join(result.text for result in results if result.text)
            )
        if results and not text:
            raise CouldNot("nothing was found that could be sent")
        if not text:
            raise CouldNot(f"you did not say what to tell {person}")
        reply = yield Ask("send", {"to": person, "text": text})
        channel = reply.get("channel") if isinstance(reply, Mapping) else None
        return StepResult(f"I sent {person} the message “{text}”.", text, items=(str(channel or person),))

    return send_message


def _pick_asked_detail(results: Sequence[StepResult], body: str) -> str:
    """The one detail that the body asks for, such as "its rating"."""
    fitting = [
        text
        for result in results
        for pattern, text in result.parts.items()
        if re.search(rf"\b(?:{pattern})\b", body, re.I)
    ]
    # If two details fit, it is open which was meant, and all is sent.
    return fitting[0] if len(fitting) == 1 else ""
