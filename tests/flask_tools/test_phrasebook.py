"""The phrasebook is as large as promised, and what it says in one language it understands in another."""

import pytest

from chaoslab.flask_tools.service_module import load_bundled_json
from chaoslab.flask_tools.translator import detect_language, translate_text

BOOK = load_bundled_json("phrasebook.json")
LANGUAGES = ["en", "fr", "de", "es", "it", "pt", "nl"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_language_has_80_phrases_and_250_words(language: str) -> None:
    column = BOOK["languages"].index(language)
    texts = {row[column].lower() for row in BOOK["entries"]}
    assert len([text for text in texts if " " in text]) >= 80
    assert len([text for text in texts if " " not in text]) >= 250


def test_every_row_is_whole_and_stands_once() -> None:
    rows = BOOK["entries"]
    assert {len(row) for row in rows} == {len(LANGUAGES)}
    assert all(text and text == text.strip() and text[-1] not in ".!?" for row in rows for text in row)
    english = [row[0].lower() for row in rows]
    assert sorted(set(english)) == sorted(english)


@pytest.mark.parametrize(
    ("text", "source", "target", "translated"),
    [
        ("Good morning! Where is the station?", "en", "fr", "Bonjour! Où est la gare?"),
        ("Le chien est grand", "fr", "de", "Der Hund ist groß"),
        ("Der Flug ist gestrichen.", "de", "en", "The flight is cancelled."),
        ("El perro es grande", "es", "it", "Il cane è grande"),
        ("O gato é preto", "pt", "en", "The cat is black"),
        ("De kat is zwart", "nl", "es", "El gato es negro"),
        ("GOOD MORNING!", "en", "fr", "BONJOUR!"),
        ("freedom, music and bread", "en", "de", "Freiheit, Musik und Brot"),
    ],
)
def test_a_text_is_heard_and_rendered(text: str, source: str, target: str, translated: str) -> None:
    assert detect_language(text)[0] == source
    assert translate_text(text, source, target) == translated
