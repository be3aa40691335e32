"""Translation in LibreTranslate's format, from a bundled phrasebook (whole phrases first, then word by
word)."""

import re
from functools import cache
from typing import Any

from chaoslab.core.service_spec import ErrorReply, ServiceSpec, ToolSpec
from chaoslab.flask_tools.service_module import Answer, Refusal, Route, ServiceRequest, load_bundled_json

# Words with apostrophes and dashes within, as in "aujourd'hui".
_WORD = re.compile(r"[^\W\d_]+(?:['’\-][^\W\d_]+)*")
TEXTS_MAX = 100


SERVICE = ServiceSpec(
    name="translator",
    tools=(
        ToolSpec(
            name="translate",
            description="Translate a text into another language.",
            parameters={
                "type": "object",
                "properties": {
                    "text": {"type": "string", "description": "The text to translate"},
                    "target": {"type": "string", "description": "ISO 639-1 code of the language wanted, e.g. fr"},
                    "source": {
                        "type": "string",
                        "description": "ISO 639-1 code of the text's own language",
                        "default": "auto",
                    },
                },
                "required": ["text", "target"],
            },
            method="POST",
            path="/translate",
            body={"q": "$text", "source": "$source", "target": "$target", "format": "text"},
        ),
    ),
    errors={
        401: ErrorReply(401, {"error": "Invalid API key"}),
        404: ErrorReply(404, {"error": "Not Found"}),
        429: ErrorReply(429, {"error": "Slowdown: 60 per 1 minute"}, {"Retry-After": "1"}),
        500: ErrorReply(500, {"error": "Cannot translate text: internal error"}),
        503: ErrorReply(503, {"error": "Service unavailable"}),
    },
    auth={"in": "body", "name": "api_key", "prefix": ""},
)


def routes() -> tuple[Route, ...]:
    return (Route("POST", "/translate", "translate", _answer_translate),)


@cache
def _load_phrasebook() -> tuple[tuple[str, ...], dict[tuple[str, str], dict[str, str]], dict[str, set[str]]]:
    """The codes, the phrases of each (source, target), and the words of each language."""
    data = load_bundled_json("phrasebook.json")
    codes = tuple(data["languages"])
    tables: dict[tuple[str, str], dict[str, str]] = {(a, b): {} for a in codes for b in codes}
    words: dict[str, set[str]] = {code: set() for code in codes}
    for row in data["entries"]:
        entry = dict(zip(codes, row, strict=True))
        for source, text in entry.items():
            words[source].update(_WORD.findall(text.lower()))
            for target in codes:
                # The first entry wins, so that the book's order decides between synonyms.
                tables[source, target].setdefault(_normalize_phrase(text), entry[target])
    return codes, tables, words


def _normalize_phrase(text: str) -> str:
    return " ".join(re.sub(r"[.,!?;:¡¿…\"“”«»]", " ", text.lower().replace("’", "'")).split())


def detect_language(text: str) -> tuple[str, float]:
    """The language whose words fit best, and the share of words that fit in percent; English if none does."""
    codes, tables, words = _load_phrasebook()
    matches = _WORD.findall(text.lower().replace("’", "'"))
    fits = {code: sum(word in words[code] for word in matches) / max(1, len(matches)) for code in codes}
    # A phrase that is known whole decides before the count of words.
    best = max(codes, key=lambda code: (_normalize_phrase(text) in tables[code, code], fits[code]))
    return best, round(100 * fits[best], 1)


def _match_case(case: str, text: str) -> str:
    """The text in the letter case of the original."""
    if len(case) > 1 and case.isupper():
        return text.upper()
    return text[:1].upper() + text[1:] if case[:1].isupper() else text


def translate_text(text: str, source: str, target: str) -> str:
    """The text in the other language; words that the phrasebook lacks stay as they are."""
    table = _load_phrasebook()[1][source, target]
    whole = table.get(_normalize_phrase(text))
    core = text.strip()
    if whole is not None and core:
        # The ending is the text's own: the book's phrases have one of theirs.
        ending = core[len(core.rstrip(".!?…")) :]
        spoken = whole.rstrip(".!?…") + ending
        return text.replace(core, _match_case(core, spoken))
    # Sentence by sentence, as the longest known run of words must not cross an end.
    pieces = re.split(r"([.!?…;:,\n]+\s*)", text)
    return "".join(
        piece if i % 2 else _translate_sentence(piece, table, nouns=source == "de") for i, piece in enumerate(pieces)
    )


def _translate_sentence(text: str, table: dict[str, str], *, nouns: bool) -> str:
    """Translates the longest known run of words first, from left to right. `nouns`: inside a sentence a capital only
    marks a noun."""
    matches = list(_WORD.finditer(text.replace("’", "'")))
    out, at, i = [], 0, 0
    while i < len(matches):
        for j in range(min(len(matches), i + 8), i, -1):
            start, end = matches[i].start(), matches[j - 1].end()
            known = table.get(_normalize_phrase(text[start:end]))
            if known is not None:
                case = "" if text[start:end] == "I" or (nouns and i) else text[start:end]
                out += [text[at:start], _match_case(case, known.rstrip(".!?…"))]
                at, i = end, j
                break
        else:
            i += 1
    return "".join([*out, text[at:]])


def _read_language_code(ask: ServiceRequest, name: str, known: tuple[str, ...]) -> str:
    """A language's code."""
    code = ask.body.get(name)
    if code is None and name == "source":
        return "auto"
    if code is None:
        raise Refusal(400, {"error": f"Invalid request: missing {name} parameter"})
    if not isinstance(code, str):
        raise Refusal(400, {"error": f"Invalid request: {name} must be a string"})
    if code not in known and not (code == "auto" and name == "source"):
        raise Refusal(400, {"error": f"{code[:40]} is not supported, only {', '.join(known)}"})
    return code


def _answer_translate(ask: ServiceRequest) -> Answer:
    text = ask.body.get("q")
    if text is None or text == "":
        raise Refusal(400, {"error": "Invalid request: missing q parameter"})
    texts = text if isinstance(text, list) else [text]
    if not all(isinstance(one, str) for one in texts) or len(texts) > TEXTS_MAX:
        raise Refusal(400, {"error": f"Invalid request: q must be a string, or up to {TEXTS_MAX} of them"})
    known = _load_phrasebook()[0]
    source, target = _read_language_code(ask, "source", known), _read_language_code(ask, "target", known)
    matches = [detect_language(one) if source == "auto" else (source, 100.0) for one in texts]
    out = [translate_text(one, language, target) for one, (language, _) in zip(texts, matches, strict=True)]
    body: dict[str, Any] = {"translatedText": out if isinstance(text, list) else out[0]}
    if source == "auto":
        detected = [{"confidence": confidence, "language": language} for language, confidence in matches]
        body["detectedLanguage"] = detected if isinstance(text, list) else detected[0]
    return Answer(body)
