"""Letters beyond ASCII are garbled in what the user and the tools said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import chaoslab as lab
from chaoslab.core.dialog import words_of
from chaoslab.core.exchange import Call
from chaoslab.faults.context.garble_context import GarbleContext
from tests.faults.dialogs import FORMATS, accepted, asked, dialogs, met_by, request, said, system


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_utf8_is_read_as_latin_1(form: str) -> None:
    talk = [*system(form), said(form, "user", "café"), *asked(form, 1, 1)]
    sent = met_by(GarbleContext(), request(form, talk))[1]
    assert [words_of(message) for message in sent if "é" in words_of(message)] == [words_of(m) for m in system(form)]
    assert words_of(sent[len(system(form))]) == "cafÃ©"
    assert words_of(sent[-1]) == "rÃ©sultat call-1-0"


def test_replacement_keeps_the_length() -> None:
    talk = [said("chat", "user", "naïve café")]
    sent = met_by(GarbleContext("replacement"), request("chat", talk))[1]
    assert sent == [said("chat", "user", "na\ufffdve caf\ufffd")]


def test_the_share_is_of_the_newest() -> None:
    talk = [said("chat", "user", f"é{n}") for n in range(4)]
    changed = [said("chat", "user", f"Ã©{n}") for n in range(4)]
    assert met_by(GarbleContext(part=0.5), request("chat", talk))[1] == [*talk[:2], *changed[2:]]
    assert met_by(GarbleContext(part=0.0), request("chat", talk))[1] == [*talk[:3], changed[3]]


def test_plain_ascii_is_left_alone() -> None:
    talk = [said("chat", "user", "cafe"), said("chat", "assistant", "café")]
    assert not met_by(GarbleContext(), request("chat", talk))[0].injected


@given(dialogs(), st.sampled_from(("mojibake", "replacement")), st.floats(0, 1))
def test_a_provider_takes_it_and_only_words_change(call: Call, kind: str, part: float) -> None:
    given_ = call.value[call.dialog.key]
    met, sent = met_by(GarbleContext(kind, part), call)  # type: ignore[arg-type]
    assert accepted(call, sent)
    assert len(sent) == len(given_)
    heard = [words_of(message) for message in given_ if call.dialog.role(message) != "system"]
    assert met.injected == any(not words.isascii() for words in heard)


def test_a_wrong_parameter_is_refused() -> None:
    with pytest.raises(ValueError, match="kind of garble_context is 'x': it should be 'mojibake' or 'replacement'"):
        lab.inject("garble_context", "model", kind="x")
