"""The lab's own agent with STREAM=on: right without a fault, met by each fault of streams, and the same each time."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chaoslab.lab._virtual_lab import LabResult
from tests.worlds.virtual import lab_runs
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)

CALM = {"TOXIC_PROB": "0", "ERROR_PROB": "0"}
STREAMED = {"STREAM": "on", "MODEL_TOKEN_MS": "50", "MODEL_TIMEOUT_S": "5", "SEED": "11"}
DISTURBED = {**STREAMED, "STREAM_PROB": "0.5", "TOXIC_PROB": "0.2", "MODEL_TOXIC_PROB": "0.2", "TRIALS": "10"}

SOME = lab_runs.prompts(range(1, 9))


def lines(found: list[LabResult], kind: str) -> list[dict[str, Any]]:
    return [kept.fields for one in found for kept in one.buffered_events if kept.fields["kind"] == kind]


def test_the_agent_answers_as_it_does_whole_and_pays_the_same() -> None:
    whole, streamed = (lab_runs.done(lab_runs.spec(CALM | more, SOME)) for more in ({}, STREAMED))
    assert {str(one.outcome) for one in streamed} == {"correct"}
    for kind, names in (("prompt_finished", ("answer", "status")), ("usage", ("prompt_tokens", "completion_tokens"))):
        told = [[[line[name] for name in names] for line in lines(found, kind)] for found in (whole, streamed)]
        assert told[0] == told[1]
        assert told[0]
    calls = [line for line in lines(streamed, "call_finished") if line["target"] == "model"]
    assert all(line["first_byte_s"] < line["last_byte_s"] <= line["duration_s"] for line in calls)
    assert not any("first_byte_s" in line for line in lines(whole, "call_finished"))


@pytest.mark.parametrize("fault", ["cut", "stall", "slow_chunks"])
def test_each_fault_of_streams_meets_the_agent(fault: str) -> None:
    found = lab_runs.done(lab_runs.spec(CALM | STREAMED | {"STREAM_PROB": "0.5", "STREAM_FAULTS": fault}, SOME))
    stages = {
        kind: {(line["request"], line["attempt"], line["request_id"]) for line in lines(found, f"fault_{kind}")}
        for kind in ("scheduled", "injected", "witnessed")
    }
    assert stages["scheduled"] >= stages["injected"] == stages["witnessed"]
    assert len(stages["witnessed"]) > 5
    outcomes = [str(one.outcome) for one in found]
    assert (outcomes.count("correct") == len(found)) == (fault == "slow_chunks")
    assert "invalid" not in outcomes
    assert ("unknown" in outcomes) == (fault == "cut")  # the beginning of a right answer may be anything


SAID = {
    "refusal": 0.1, "unknown_tool": 0.1, "missing_arguments": 0.1, "duplicate_calls": 0.1, "finish_length": 0.05,
    "empty_answer": 0.05, "content_filter": 0.05, "malformed_arguments": 0.1, "confabulation": 0.2, "early_stop": 0.2,
    "cut_arguments": 0.1, "corrupt_chunk": 0.05, "context_length": 0.05,
}  # fmt: skip


def test_faults_of_what_the_model_says_meet_the_agent_in_streams_too() -> None:
    faults = ",".join(f"{fault}:{chance}" for fault, chance in SAID.items())
    found = lab_runs.done(lab_runs.spec(CALM | STREAMED | {"FAULTS": faults, "TRIALS": "30"}))
    injected, witnessed = (
        {
            (line["fault"], trial, line["request_id"], line["attempt"])
            for trial, one in enumerate(found)
            for line in lines([one], f"fault_{kind}")
        }
        for kind in ("injected", "witnessed")
    )
    met = Counter(each[1:] for each in injected)
    assert (
        {each for each in injected if met[each[1:]] == 1} <= witnessed <= injected
    )  # of several, one may undo another
    assert {fault for fault, *_ in witnessed} == {*SAID}
    assert "invalid" not in {str(one.outcome) for one in found}
    for one in (each for each in found if str(each.outcome) == "unknown"):  # after a deed, or with times that are none
        assert {"refusal", "confabulation"} & {line["fault"] for line in lines([one], "fault_witnessed")}


def test_the_same_seed_is_the_same_bytes(tmp_path: Path) -> None:
    work = replace(lab_runs.spec(DISTURBED), twins=False)  # which are not written down
    once = lab_runs.written(tmp_path / "1", work, lab_runs.done(work))
    faults = {json.loads(line).get("fault") for line in (once["info.log"] + once["manager.log"]).splitlines()}
    assert {"cut", "stall", "slow_chunks", "latency", "timeout"} <= faults
    for number, more in enumerate(({"shuffled": True}, {"jobs": 2, "shuffled": True}), 2):
        assert lab_runs.written(tmp_path / str(number), work, lab_runs.done(work, **more)) == once  # type: ignore[arg-type]
