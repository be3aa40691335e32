"""Translation of a text, a quotation or an earlier finding."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from chaoslab.model._reading import QUOTE, strip_politeness
from chaoslab.model._story import Ask, CouldNot, Draft, Step, StepResult, Story

LANGUAGES = {
    name: code
    for code, names in {
        "en": "english", "fr": "french", "de": "german", "es": "spanish castilian", "it": "italian",
        "pt": "portuguese", "nl": "dutch", "sv": "swedish", "no": "norwegian", "nb": "bokmål", "da": "danish",
        "fi": "finnish", "pl": "polish", "cs": "czech", "ru": "russian", "uk": "ukrainian", "tr": "turkish",
        "el": "greek", "ja": "japanese", "zh": "chinese mandarin", "ko": "korean", "ar": "arabic", "he": "hebrew",
        "hi": "hindi", "hu": "hungarian", "ro": "romanian", "bg": "bulgarian", "hr": "croatian", "sk": "slovak",
        "sl": "slovenian slovene", "sr": "serbian", "et": "estonian", "lv": "latvian", "lt": "lithuanian",
        "id": "indonesian", "vi": "vietnamese", "th": "thai", "fa": "persian farsi", "ga": "irish", "ca": "catalan",
        "la": "latin", "is": "icelandic", "eo": "esperanto",
    }.items()
    for name in names.split()
}  # fmt: skip
_LANGUAGE = "|".join(LANGUAGES)
_INTO = rf"(?:in)?to\s+(?P<to>(?:{_LANGUAGE})(?:\s*(?:,\s*and|,|and|&)\s*(?:in|to|into)?\s*(?:{_LANGUAGE}))*)\b"
_FROM = rf"(?:\s+from\s+(?P<source>{_LANGUAGE}))?"
_IN = rf"in\s+(?P<to>(?:{_LANGUAGE})(?:\s*(?:,\s*and|,|and)\s*(?:in\s+)?(?:{_LANGUAGE}))*)\b"
_PATTERNS = tuple(
    re.compile(pattern, re.I)
    for pattern in (
        rf"^translate(?P<what>.*?){_FROM}\s+{_INTO}(?:\s+from\s+(?P<source2>{_LANGUAGE}))?(?P<what2>.*)$",
        rf"^translate\s+{_INTO}(?:\s+from\s+(?P<source>{_LANGUAGE}))?(?P<what>.*)$",
        (
            rf"^(?:how (?:do|does|would|can|should) (?:you|i|we|one) (?:say|write)|say|what(?:'s| is)|"
            rf"what does|put|write|express|give me)\s+(?P<what>.+?)\s+(?:mean )?{_IN}\s*$"
        ),
        rf"^what does\s+(?P<what>.+?)\s+mean(?: in (?P<to>{_LANGUAGE}))$",
        rf"^what does\s+(?P<what>{QUOTE})\s+mean$",
        (
            rf"^(?:what(?:'s| is)|give me|tell me|find)\s+(?:the\s+)?(?P<to>{_LANGUAGE})\s+(?:word|translation|"
            rf"phrase|term|expression)?\s*(?:for|of)\s+(?P<what>.+)$"
        ),
        (
            rf"^(?:make|convert|turn|render|get|provide|do|i need)\s+(?:an? )?(?:(?:the )?translation "
            rf"(?:of|for)\s+)?(?P<what>.*?)\s+(?:in)?to\s+(?P<to>{_LANGUAGE})\b(?:\s+translation)?$"
        ),
        (
            r"^(?:(?:give|tell|show|get)(?: me)? )?(?:the )?translation (?:of|for) (?P<what>.+?) (?:in|into|to) "
            rf"(?P<to>{_LANGUAGE})$"
        ),
        rf"^(?P<what>{QUOTE})\s+(?:in|to|into)\s+(?P<to>{_LANGUAGE})$",
    )
)
_LATEST = re.compile(r"\b(?:latest|last|newest|most recent|it|that|this|one|first|message|him|her)\b", re.I)
REFERS = re.compile(
    r"^(?:it|that|this|them|those|these|both|the "
    r"(?:result|answer|outcome|translation|text|summary|snippet|title|first (?:result|one)|"
    r"latest(?: one| message)?|last(?: one| message)?|newest(?: one| message)?|most recent(?: "
    r"one| message)?|messages?|forecast|weather|reply|temperature)"
    r"|(?:his|her|their|its) (?:latest |last |newest )?(?:message|note|text|title)s?|what (?:you|"
    r"she|he|they) (?:find|found|get|got|see|said|say|wrote|write))$",
    re.I,
)


def plan_clause(clause: str, draft: Draft) -> bool:
    match = next((pattern_match for pattern in _PATTERNS if (pattern_match := pattern.match(clause))), None)
    if match is None:
        return False
    groups = match.groupdict()
    # "Say hello to Ana in French" is a message, in French.
    if re.match(r"(?i:say|write|put|wish)\b.*\bto [A-ZÀ-Þ#@]", clause):
        return False
    if groups.get("what2") and REFERS.match((groups.get("what") or "").strip(" :,")):
        groups["what"] = groups["what2"]
    text = (groups.get("what") or "").strip(" :,") or (groups.get("what2") or "").strip(" :,")
    source = groups.get("source") or groups.get("source2")
    text = (
        re.sub(
            r"^(?:the )?(?:word|phrase|sentence|text|words|following(?: \w+)?)s?\s*:?\s*(?=\S)", "", text, flags=re.I
        )
        if not REFERS.match(text)
        else text
    )
    needs: tuple[int, ...] = ()
    literal = ""
    if quote := re.search(QUOTE, text):
        literal = draft.restore_quotes(quote[0])
    elif not text or REFERS.match(text):
        needs = draft.last
        literal = "" if needs else draft.earlier
    else:
        needs = _add_source_steps(text, draft)
        literal = "" if needs else draft.restore_quotes(text)
    steps = []
    # “What does ‘hola’ mean” names no language: the request is in English.
    for language in re.findall(_LANGUAGE, groups.get("to") or "english", re.I):
        code = LANGUAGES[language.lower()]
        steps.append(
            draft.add_step(
                Step(
                    f"translate {f'“{literal}”' if literal else 'that'} to {language}",
                    _make_translation_by_code_story(literal, text, code, source),
                    needs,
                    "translate",
                )
            )
        )
    draft.last = tuple(steps)
    return True


def _add_source_steps(text: str, draft: Draft) -> tuple[int, ...]:
    """The steps for a text that must be fetched first, such as "the latest message from Ana"."""
    from chaoslab.model.skills import inbox, weather

    before = len(draft.steps)
    if re.match(
        r"(?:the )?(?:\w+ )?(?:messages?|inbox)\b.*\bfrom\b|\w+['’]s (?:latest |last |newest )?messages?", text, re.I
    ) and inbox.plan_clause(strip_politeness(text), draft):
        return tuple(range(before, len(draft.steps)))
    if re.match(r"the (?:current )?(?:weather|forecast|temperature)\b", text, re.I) and weather.plan_clause(
        text, draft
    ):
        return tuple(range(before, len(draft.steps)))
    return ()


def _make_translation_by_code_story(literal: str, source_text: str, code: str, source: str | None) -> Any:
    def translate_text(results: Sequence[StepResult]) -> Story:
        text = literal
        if results:
            latest = (
                _LATEST.search(source_text)
                and len(results) == 1
                and results[0].items
                and results[0].text not in results[0].items
            )
            text = results[0].items[0] if latest else " ".join(result.text for result in results)
        if not text:
            raise CouldNot("there is no text to translate")
        slots = {"text": text, "target": code, **({"source": LANGUAGES[source.lower()]} if source else {})}
        reply = yield Ask("translate", slots)
        return make_step_result(reply, text, code)

    return translate_text


def make_translation_story(literal: str, source_text: str, language: str) -> Any:
    """The story of translating a text, or the findings of earlier steps."""
    return _make_translation_by_code_story(literal, source_text, LANGUAGES[language.lower()], None)


def make_step_result(reply: Any, text: str, code: str) -> StepResult:
    language = next(name for name, language_code in LANGUAGES.items() if language_code == code).title()
    translated = (
        next((reply[key] for key in ("translatedText", "translation", "text") if key in reply), reply)
        if isinstance(reply, Mapping)
        else reply
    )
    return StepResult(f"“{text}” in {language} is “{translated}”.", str(translated))
