"""A stream's events, whatever parts they come in, and the watch that tells if a pipe changed anything."""

from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoslab.core.chain import ActiveFault
from chaoslab.core.exchange import Call, Flow, Reply, TrialContext
from chaoslab.core.fault import BrokenFault, Fault
from chaoslab.core.pipe import PacedQueue, Signal, Timed
from chaoslab.core.stream import (
    EVENT_MAX,
    EventSplitter,
    FrameSplitter,
    PipedBody,
    WatchedPipe,
    build_frame,
    is_done_marker,
)
from tests.faults.fault_parts import Target, meet
from tests.seams.stream_parts import STREAM, Timetable, event

ENDS = (b"\n\n", b"\r\n\r\n", b"\r\r")


def cut(parts: Iterable[bytes]) -> tuple[list[bytes], bytes]:
    events = EventSplitter()
    return [each for part in parts for each in events.feed(part)], events.rest


@given(
    said=st.lists(st.tuples(st.sampled_from([b"data: 1", b"data: a\nid: 2", b": ping", b"d"]), st.sampled_from(ENDS))),
    rest=st.sampled_from([b"", b"data: half", b"data: half\n"]),
    data=st.data(),
)
def test_events_come_whole_whatever_parts_they_come_in(
    said: list[tuple[bytes, bytes]], rest: bytes, data: st.DataObject
) -> None:
    whole = b"".join(text + end for text, end in said) + rest
    places = sorted(data.draw(st.lists(st.integers(0, len(whole)))))
    parts = [whole[a:b] for a, b in zip([0, *places], [*places, len(whole)], strict=True)]
    assert cut(filter(None, parts)) == ([text + end for text, end in said], rest)


def test_an_event_that_never_ends_is_not_kept_for_ever() -> None:
    events, size = EventSplitter(), 0
    for _ in range(40):
        size += sum(map(len, events.feed(b"x" * 65536)))
        assert len(events.rest) <= EVENT_MAX
    assert size + len(events.rest) == 40 * 65536


@pytest.mark.parametrize(
    ("said", "done"),
    [
        (b"data: [DONE]\n\n", True),
        (b"data:[DONE]\r\n\r\n", True),
        (b'data: {"choices": [{"delta": {"content": "[DONE]"}}]}\n\n', False),
        (b"data: [DONE] not\n\n", False),
    ],
)
def test_done_is_an_event_of_its_own(said: bytes, done: bool) -> None:
    assert is_done_marker(said) is done


def watched(pipe: PacedQueue, *items: bytes | Signal, until: float = 9.0) -> list[str]:
    found: list[str] = []
    watch = WatchedPipe(pipe)
    watch.on_change = lambda: found.append("changed")
    for moment, item in enumerate(items):
        watch.feed(Timed(float(moment), item))
        watch.poll(float(moment))
    watch.poll(until)
    return found


def test_a_pipe_that_lets_all_pass_at_once_has_changed_nothing() -> None:
    assert watched(PacedQueue(lambda timed, start: (Timed(start, timed.item),)), b"1", b"2", Signal.END) == []


@pytest.mark.parametrize(
    "law",
    {
        "late": lambda timed, start: (Timed(start + 0.1, timed.item),),
        "never": lambda timed, start: (),  # noqa: ARG005
        "another": lambda timed, start: (Timed(start, b"?"),),  # noqa: ARG005
        "cut in two": lambda timed, start: (Timed(start, timed.item[:1]), Timed(start, timed.item[1:])),
        "and something more": lambda timed, start: (Timed(start, timed.item), Timed(start, b"more")),
        "ended": lambda timed, start: (Timed(start, Signal.END),),  # noqa: ARG005
    }.values(),
    ids=["late", "never", "another", "cut in two", "and something more", "ended"],
)
def test_any_difference_is_told_once(law: object) -> None:
    assert watched(PacedQueue(law), b"one", b"two") == ["changed"]  # type: ignore[arg-type]


class Through(Fault):
    """Puts a pipe over the reply."""

    layer = "stream"

    def __init__(self, law: object) -> None:
        self.law = law

    def flow(self, call: Call, context: TrialContext) -> Flow:  # noqa: ARG002
        reply: Reply = yield call
        return reply.through(PacedQueue(self.law))  # type: ignore[arg-type]


def piped(law: object) -> tuple[WatchedPipe, ActiveFault]:
    met = meet(Through(law), Target(reply=Reply(200, STREAM, stream=Timetable([]))))
    assert met.reply is not None
    (pipe,) = met.reply.pipes
    return pipe, met.active


def test_a_story_is_injected_when_its_pipe_changes_something_and_not_before() -> None:
    pipe, active = piped(lambda timed, start: (Timed(start + (timed.item == event(1)), timed.item),))
    assert not active.injected
    for number, met in ((0, False), (1, True)):
        pipe.feed(Timed(float(number), event(number)))
        pipe.poll(float(number))
        assert active.injected is met


@pytest.mark.parametrize("look", [WatchedPipe.find_next_due, lambda pipe: pipe.poll(0.0)])
def test_a_pipe_that_raises_is_a_broken_fault(look: Callable[[WatchedPipe], object]) -> None:
    def law(timed: Timed, start: float) -> Iterable[Timed]:  # noqa: ARG001
        raise ZeroDivisionError("oh")

    pipe, _ = piped(law)
    pipe.feed(Timed(0.0, b"1"))
    with pytest.raises(BrokenFault, match="its flow\\(\\) raised ZeroDivisionError"):
        look(pipe)


def test_another_head_is_a_change_at_once() -> None:
    class Teapot(Through):
        def flow(self, call: Call, context: TrialContext) -> Flow:  # noqa: ARG002
            reply: Reply = yield call
            return Reply(418, reply.headers, stream=reply.stream)

    assert meet(Teapot(None), Target(reply=Reply(200, STREAM, stream=Timetable([])))).injected


def test_streams_are_alike_if_they_are_one() -> None:
    source = Timetable([])
    one, piped_one = (
        Reply(200, STREAM, stream=source),
        Reply(200, STREAM, stream=source).through(PacedQueue(lambda *_: ())),
    )
    assert one.same_as(piped_one)
    assert not piped_one.same_as(one), "its pipe is gone"
    assert not one.same_as(Reply(200, STREAM, stream=Timetable([])))


def test_a_body_has_room_again_once_a_pipe_has_cut_an_event_and_the_next_one_holds_it_back() -> None:
    def halved(timed: Timed, start: float) -> list[Timed]:
        return [Timed(start, timed.item if isinstance(timed.item, Signal) else timed.item[:4])]

    def kept(timed: Timed, start: float) -> list[Timed]:
        return [Timed(start, timed.item)] if isinstance(timed.item, Signal) else []

    body = PipedBody([WatchedPipe(PacedQueue(law, capacity_bytes=0)) for law in (halved, kept)], 0.0)
    body.feed(b"data: 1\n\n", 0.0)
    assert (body.poll(0.0), body.has_room) == (None, True)


def test_a_frame_that_says_it_is_shorter_than_its_length_is_its_length() -> None:
    whole = build_frame("chunk", {"a": 1})
    assert FrameSplitter().feed(b"\0\0\0\1" + whole) == [b"\0\0\0\1", whole]
