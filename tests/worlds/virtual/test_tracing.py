"""The tracing of openai-agents: its queue outlives a trial, and nothing of the trial is in it."""

from types import SimpleNamespace
from typing import Any

import pytest

import chaoslab as lab


@pytest.mark.parametrize("own", [False, True])
def test_nothing_of_a_trial_is_left_to_be_sent(own: bool) -> None:
    from agents.tracing.processor_interface import TracingExporter
    from agents.tracing.processors import BackendSpanExporter, BatchTraceProcessor

    sent: list[str] = []

    def export(_: Any, items: list[Any]) -> None:
        sent.extend(item.name for item in items)

    base = TracingExporter if own else BackendSpanExporter
    processor = BatchTraceProcessor(type("Exporter", (base,), {"export": export})(), schedule_delay=600)

    def agent(prompt: str) -> str:
        trace: Any = SimpleNamespace(name=prompt)
        processor.on_trace_start(trace)
        processor.on_span_end(trace)
        return "Done."

    assert str(lab.run(agent, "in a trial").outcome) == "correct"
    agent("outside")
    processor.shutdown()  # as at the end of the process
    # Of the twin, which runs twice, and of the trial.
    assert sent == ["in a trial"] * 6 * own + ["outside"] * 2
