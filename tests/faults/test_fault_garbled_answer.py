"""The text of a model's answer is garbled, as by a proxy that takes UTF-8 for Latin-1."""

from __future__ import annotations

import pytest

from chaoslab.core.answers import Said
from chaoslab.faults.model.garbled_answer import GarbledAnswer
from tests.faults.answer_parts import FORMATS, met

EVIDENCE = "an answer that the model did not give reached the caller"


@pytest.mark.parametrize("name", FORMATS)
def test_the_words_are_garbled(name: str) -> None:
    meeting, said = met(GarbledAnswer(), name, calls=False)
    assert said.text == "�t �s 21.5 d�gr��s �n �sl� �nd 30 �n P�r�s."
    assert meeting.evidence == EVIDENCE


def test_letters_beyond_ascii_are_read_as_latin_1() -> None:
    assert GarbledAnswer().changed(Said("21 °C à Zürich")).text == "21 Â°C Ã\xa0 ZÃ¼rich"


@pytest.mark.parametrize("name", FORMATS)
def test_an_answer_without_words_passes_unchanged(name: str) -> None:
    meeting, said = met(GarbledAnswer(), name, calls=True)
    assert (len(said.calls), meeting.injected) == (2, False)
