"""The text of a model's answer is garbled, as by a proxy that takes UTF-8 for Latin-1."""

from dataclasses import dataclass, replace

from chaoslab.core.answers import AnswerContent
from chaoslab.core.changed_answer import ChangedAnswer

VOWELS = "aeiou"
"""The letters that are lost where a text is of ASCII alone, which a mistaken encoding would not change."""


@dataclass(frozen=True)
class GarbledAnswer(ChangedAnswer):
    """Garbles the answer's words: UTF-8 is read as Latin-1 ("é" becomes "Ã©").

    In a text of ASCII alone each vowel becomes U+FFFD. Calls of tools stay, and an answer without words passes
    unchanged.
    """

    leaves = "value"
    needs = "words in the model's answer"
    example = '"garbled_answer", "api.openai.com", chance=0.1'
    source = "https://github.com/floritange/AgentChaos/blob/main/docs/faults.md"

    def change_content(self, content: AnswerContent) -> AnswerContent:
        return replace(content, text=_garble_text(content.text)) if content.text else content


def _garble_text(text: str) -> str:
    if not text.isascii():
        # replace, since half of a surrogate pair, which JSON may hold, has no UTF-8.
        return text.encode("utf-8", "replace").decode("latin-1")
    return "".join("\N{REPLACEMENT CHARACTER}" if letter.lower() in VOWELS else letter for letter in text)
