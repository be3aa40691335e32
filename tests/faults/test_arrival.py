"""The bytes of an answer arrive, piece by piece, as the fault's page says."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

import chaoslab as lab
from chaoslab.core.events import FaultWitnessed
from chaoslab.core.exchange import Arrival
from chaoslab.core.fault import Fault, load_fault
from chaoslab.execution import _arrival as arrival
from chaoslab.faults.network.bandwidth import Bandwidth
from chaoslab.faults.network.latency import Latency
from chaoslab.faults.network.limit_data import LimitData
from chaoslab.faults.network.reset_peer import ResetPeer
from chaoslab.faults.network.slicer import Slicer
from chaoslab.faults.network.slow_close import SlowClose
from chaoslab.faults.network.timeout import Timeout
from chaoslab.faults.stream.slow_chunks import SlowChunks
from chaoslab.seams.services.seam import ServiceAttempt

OF_BYTES = ["bandwidth", "limit_data", "slicer", "slow_close"]


@pytest.mark.parametrize("name", [*OF_BYTES, "jitter", "latency", "reset_peer", "slow_chunks", "timeout"])
def test_what_arrives_is_what_the_page_says(name: str) -> None:
    assert arrival.describe_piece_mismatch(name, 1) == ""


@pytest.mark.parametrize("name", OF_BYTES)
def test_the_check_finds_a_wire_that_passes_all_bytes_as_they_are(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ServiceAttempt, "make_fault_wire", lambda *_: None)
    assert arrival.describe_piece_mismatch(name, 1)


def test_a_fault_whose_page_says_nothing_of_pieces_is_not_compared() -> None:
    assert arrival.describe_piece_mismatch("lost_reply", 1) is None


WHOLE = b"0123456789"


def got(*pieces: tuple[float, bytes], ended_s: float = 0.0, error: str | None = None) -> Arrival:
    return Arrival(WHOLE, 2, pieces, ended_s, error)


@pytest.mark.parametrize(("fault", "seen", "said"), [
    (Slicer(4, 0, 0.1), got((0.1, WHOLE)), "a piece has 10 bytes, at most 4 were armed"),
    (Slicer(5, 0, 0.1), got((0.1, WHOLE[:5]), (0.15, WHOLE[5:])), "a piece came after 0.050 s, at least 0.100 s were"),
    (Slicer(5, 0, 0.1), got((0.1, WHOLE[:5])), "5 bytes came that are not the 10 due"),
    (Bandwidth(1), got((0.001, WHOLE)), "10 bytes came within 1.0 ms, at most 1 kB/s were armed"),
    (Bandwidth(1), got((9.0, b"0" * 101)), "101 bytes came in a piece, more than pass within 0.100 s"),
    (LimitData(4), got(), "0 bytes came that are not the 4 due"),
    (LimitData(4), got((0.0, b"abcd")), "4 bytes came that are not the 4 due"),
    (SlowClose(1.0, 4), got((0.0, WHOLE[:4]), ended_s=0.5), "closed 0.500 s after the last byte, 1.000 s were armed"),
    (SlowClose(1.0, 4), got(ended_s=1.0), "0 bytes came that are not the 4 due"),
    (Latency(0.5), got((0.1, WHOLE)), "the first bytes came after 0.100 s, 0.500 s were armed"),
    (Timeout(0.0), got(ended_s=1.0), "the connection ended after 1.000 s"),
    (Timeout(2.0), got(ended_s=1.0), "the connection ended after 1.000 s"),
    (Timeout(1.0), got((0.0, b"0"), ended_s=1.0), "1 bytes came that are not the 0 due"),
    (ResetPeer(), got(), "the end was closed, not a reset"),
    (SlowChunks(0.5), got((0.0, WHOLE)), "2 events came at 1 moments"),
    (SlowChunks(0.5), got((0.0, b"0"), (0.1, b"12"), (0.3, WHOLE[3:])), "two events came 0.200 s apart"),
])  # fmt: skip
def test_a_page_says_how_an_arrival_is_unlike_it(fault: Fault, seen: Arrival, said: str) -> None:
    assert fault.describe_deviation(seen).startswith(said)


@dataclass
class Chat:
    """A stream of lines of JSON, as Ollama's, in parts of which none is a whole line."""

    lines: int = 5

    def __call__(self, _: Any) -> tuple[int, Iterator[bytes], dict[str, str]]:
        said = "".join(
            json.dumps({"message": {"content": "Café 北京"}, "done": number == self.lines}, ensure_ascii=False) + "\n"
            for number in range(1, self.lines + 1)
        ).encode()
        parts = (said[at : at + 30] for at in range(0, len(said), 30))
        return 200, parts, {"Content-Type": "application/x-ndjson"}


def met(name: str, **given: Any) -> tuple[list[bytes], str, list[str]]:
    """The pieces that a client of the stream takes, its end, and the evidence of the fault."""

    def agent(_: str) -> list[str]:
        found, end = list[str](), ""
        try:
            with httpx.stream("POST", "http://ollama.test/api/chat", json={}, timeout=5) as reply:
                for piece in reply.iter_raw():
                    found.append(piece.hex())
        except httpx.HTTPError as error:
            end = type(error).__name__
        return [*found, end]

    faults = [lab.inject(name, "ollama.test", **given)]
    trial = lab.run(agent, "go", services={"ollama.test": Chat()}, faults=faults, twin=False)
    *pieces, end = trial.answer
    return (
        [bytes.fromhex(piece) for piece in pieces],
        end,
        [e.evidence for _, e in trial.history.find_events(FaultWitnessed)],
    )


def test_a_slicer_cuts_lines_and_characters_in_two() -> None:
    pieces, end, evidence = met("slicer", average_bytes=10, variation_bytes=0)
    assert (end, len(evidence)) == ("", 1)
    assert [json.loads(line)["message"]["content"] for line in b"".join(pieces).splitlines()] == ["Café 北京"] * 5
    assert sum(piece.endswith(b"\n") for piece in pieces) < len(pieces) / 2
    broken = 0
    for piece in pieces:
        try:
            piece.decode()
        except UnicodeDecodeError:
            broken += 1
    assert broken


@pytest.mark.parametrize(("name", "lines", "end"), [
    ("cut", 2, ""), ("disconnect", 2, "ReadError"), ("corrupt_chunk", 5, ""), ("stall", 5, ""),
])  # fmt: skip
def test_a_fault_of_streams_counts_lines_as_events(name: str, lines: int, end: str) -> None:
    pieces, ended, evidence = met(name, after_events=2, **({"stall_s": 2.0} if name == "stall" else {}))
    whole = b"".join(pieces)
    assert (whole.count(b"\n"), ended, len(evidence)) == (lines, end, 1)
    readable = 0
    for line in whole.splitlines():
        try:
            json.loads(line)
            readable += 1
        except ValueError:
            pass
    assert readable == lines - (name == "corrupt_chunk")


def test_an_error_in_a_stream_of_lines_is_a_line() -> None:
    pieces, end, evidence = met("error_event", after_events=1)
    *_, last = b"".join(pieces).splitlines()
    assert "error" in json.loads(last)
    assert (end, len(evidence)) == ("", 1)


def test_a_fault_of_values_reads_the_lines_as_one_answer() -> None:
    pieces, end, evidence = met("malformed_json")
    assert (len(pieces), end, len(evidence)) == (1, "", 1)
    assert load_fault("malformed_json").leaves == "garbage"
