"""The manager when Toxiproxy fails, forgets or refuses, the log is lost, or an agent is gone."""

import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chaoslab.core import events
from chaoslab.core.exchange import Call
from chaoslab.core.plan import Plan
from chaoslab.proxy_manager import manager as manager_module
from chaoslab.record.runs import Run
from chaoslab.wire.control import ControlDatabase
from chaoslab.wire.lanes import Health, LabDown
from chaoslab.wire.proxies import ToxiproxyDown, ToxiproxyError
from tests.proxy_manager.manager_parts import CALL, SLOW, Ahead, always, another, end, on_lab, seen, turn_away, with_lab
from tests.seams.lab_parts import NOW, Bench, embedded, eventually, managed, open_run

MET = {"latency": seen(0.06), "refused": seen(0.001, error="refused")}
"""The observation of a caller that met the fault."""
UNARMED = "a fault could not be armed: no (HTTP 500)"
PARAMS: dict[str, dict[str, object]] = {"latency": SLOW, "refused": {}}


# Arming.


def cut(_: Bench) -> ToxiproxyError:
    return ToxiproxyDown("the connection was cut")


def refuses(_: Bench) -> ToxiproxyError:
    return ToxiproxyError("no", status=500)


def forgets(lab: Bench) -> ToxiproxyError:
    lab.toxiproxy.destroy("weather")
    return ToxiproxyError("proxy not found", status=404)


def gives_away(lab: Bench) -> ToxiproxyError:
    turn_away(lab, "weather")
    return cut(lab)


@pytest.mark.parametrize(
    ("fails", "end", "tries", "trouble"),
    [
        ([], "armed", 1, ""),
        ([cut, cut], "armed", 3, ""),
        ([cut, cut, cut], "a fault could not be armed: the connection was cut", 3, ""),
        ([refuses], UNARMED, 1, UNARMED),
        ([forgets], "armed", 2, ""),
        ([forgets, refuses], UNARMED, 2, UNARMED),
        ([gives_away], "'weather' on the Toxiproxy at ", 1, ""),
    ],
)
@on_lab(always("latency", **SLOW))
async def test_a_fault_is_armed_anew_twice_where_toxiproxy_was_restarted_and_else_not(
    lab: Bench, *, fails: list[Callable[[Bench], ToxiproxyError]], end: str, tries: int, trouble: str
) -> None:
    arming: Any = lab.manager._arming
    real, left, tried = arming.make_lane_for_call, list(fails), list[object]()

    def arm(*given: object) -> object:
        tried.append(given)
        if left:
            raise left.pop(0)(lab)
        return real(*given)

    arming.make_lane_for_call = arm
    try:
        _, answer = await lab.seam.lanes.request_lane(CALL, deadline_s=2.0)
        ended = answer.state
    except LabDown as down:
        ended = str(down)
    assert ended.startswith(end)
    assert len(tried) == tries
    assert arming.trouble == trouble
    assert len(lab.manager.status()["lanes"]) == (end == "armed")


# Taking down.


@pytest.mark.parametrize("fault", ["latency", "refused"])
@pytest.mark.parametrize(("fails", "lost"), [(0, False), (1, False), (2, True)])
def test_a_lane_is_lost_when_toxiproxy_cannot_be_asked_about_it_twice(
    fault: str, fails: int, lost: bool, tmp_path: Path
) -> None:
    async def story(lab: Bench) -> None:
        row, _ = await lab.seam.lanes.request_lane(CALL, deadline_s=2.0)
        left = ["the connection was cut"] * fails
        toxiproxy: Any = lab.manager._toxiproxy

        def cut(real: Callable[[str], object]) -> Callable[[str], object]:
            def asks(name: str) -> object:
                if left:
                    raise ToxiproxyDown(left.pop())
                return real(name)

            return asks

        toxiproxy.destroy, toxiproxy.fetch_proxy = cut(toxiproxy.destroy), cut(toxiproxy.fetch_proxy)
        lab.seam.lanes.end_call_with_observation(
            row, {"latency": seen(0.06), "refused": seen(0.001, error="refused")}[fault]
        )
        history = lab.history()
        assert [e.witnessed for _, e in history.find_events(events.FaultHealed)] == [not lost]
        assert len(list(history.find_events(events.CallDisturbed))) == lost
        assert lab.manager.health() == Health()

    with_lab(tmp_path, always(fault, **PARAMS[fault]), story)


@on_lab(always("latency", **SLOW))
async def test_a_lane_that_cannot_be_deleted_is_trouble_and_its_fault_was_met(lab: Bench) -> None:
    row, _ = await lab.seam.lanes.request_lane(CALL, deadline_s=2.0)
    asked: list[str] = []

    def refuses(name: str) -> None:
        asked.append(name)
        raise ToxiproxyError("no", status=500)

    toxiproxy: Any = lab.manager._toxiproxy
    toxiproxy.destroy = refuses
    lab.seam.lanes.end_call_with_observation(row, seen(0.06))
    history = lab.history()
    assert [e.witnessed for _, e in history.find_events(events.FaultHealed)] == [True]
    assert asked == lab.lanes_left()  # once
    assert lab.manager.health().trouble == "no (HTTP 500)"
    del toxiproxy.destroy


@on_lab(always("latency", **SLOW))
async def test_a_lane_that_is_known_to_be_lost_is_not_asked_about(lab: Bench) -> None:
    row, _ = await lab.seam.lanes.request_lane(CALL, deadline_s=2.0)
    (lane,) = lab.lanes_left()
    for name in (lane, "weather"):
        lab.toxiproxy.destroy(name)
    eventually(lambda: lab.manager.health() == Health(epoch=1))
    asked: list[str] = []
    toxiproxy: Any = lab.manager._toxiproxy
    toxiproxy.destroy = asked.append
    lab.seam.lanes.end_call_with_observation(row, seen(0.06))
    history = lab.history()
    assert [e.why for _, e in history.find_events(events.CallDisturbed)] == [
        f"its lane {lane} was lost before it was over"
    ]
    assert asked == []
    del toxiproxy.destroy


@on_lab(always("latency", **SLOW))
async def test_a_lane_that_somebody_deleted_is_lost_and_no_trouble(lab: Bench) -> None:
    told: list[str] = []
    lab.manager.tell = told.append
    row, _ = await lab.seam.lanes.request_lane(CALL, deadline_s=2.0)
    (lane,) = lab.lanes_left()
    lab.toxiproxy.destroy(lane)
    toxiproxy: Any = lab.manager._toxiproxy
    real, asked = toxiproxy.destroy, list[str]()

    def destroy(name: str) -> None:
        asked.append(name)
        real(name)

    toxiproxy.destroy = destroy
    lab.seam.lanes.end_call_with_observation(row, MET["latency"])
    history = lab.history()
    assert asked == [lane]  # once
    del toxiproxy.destroy
    assert [e.why for _, e in history.find_events(events.CallDisturbed)] == [
        f"its lane {lane} was lost before it was over"
    ]
    assert lab.manager.health() == Health()
    assert told == ["latency on weather.current_weather, p1.r1 attempt 1: lost with its lane"]


@on_lab(always("latency", **SLOW))
async def test_a_lane_that_is_not_found_has_toxiproxy_looked_at_before_its_call_is_over(lab: Bench) -> None:
    row, _ = await lab.seam.lanes.request_lane(CALL, deadline_s=2.0)
    (lane,) = lab.lanes_left()
    epochs: list[int] = []
    manager: Any = lab.manager
    real = manager._log_fault_event

    def write(experiment: object, row: object, event: object) -> None:
        epochs.append(manager._standing.epoch)
        real(experiment, row, event)

    manager._log_fault_event = write
    for name in (lane, "weather"):
        lab.toxiproxy.destroy(name)
    lab.seam.lanes.end_call_with_observation(row, MET["latency"])
    lab.history()
    assert epochs == [1]


@pytest.mark.parametrize(
    ("fault", "gone", "lost"),
    [
        ("latency", ["weather"], False),
        ("latency", ["weather", "lane"], True),
        ("refused", ["weather"], False),
        ("refused", ["refused"], True),
    ],
)
def test_of_the_lanes_in_force_those_are_lost_that_toxiproxy_has_no_more(
    fault: str, gone: list[str], lost: bool, tmp_path: Path
) -> None:
    async def story(lab: Bench) -> None:
        row, _ = await lab.seam.lanes.request_lane(CALL, deadline_s=2.0)
        (lane,) = [shown["lane"] for shown in lab.manager.status()["lanes"]]
        for name in gone[::-1]:  # the lane first: to be found missing together
            lab.toxiproxy.destroy(lane if name == "lane" else name)
        eventually(lambda: lab.manager.health() == Health(epoch=1))
        lab.seam.lanes.end_call_with_observation(row, MET[fault])
        history = lab.history()
        assert [e.lanes for _, e in history.find_events(events.LabDisturbed)] == [[lane] if lost else []]
        assert [e.witnessed for _, e in history.find_events(events.FaultHealed)] == [not lost]
        assert len(list(history.find_events(events.CallDisturbed))) == lost

    with_lab(tmp_path, always(fault, **PARAMS[fault]), story)


@pytest.mark.parametrize("ends", ["its lease", "the log", "its run"])
def test_the_port_that_refuses_stands_on_when_a_call_of_it_ends_by_something_else(ends: str, tmp_path: Path) -> None:
    clock = Ahead()

    async def story(lab: Bench) -> None:
        another(lab)
        row, _ = await lab.seam.lanes.request_lane(CALL, deadline_s=2.0)
        if ends == "its lease":
            clock.by_s = 70
        elif ends == "the log":
            (lab.run.folder / "manager.log").unlink()
            lab.seam.lanes.end_call_with_observation(row, MET["refused"])
        else:
            end(lab, lab.run)
        eventually(lambda: not lab.manager.status()["lanes"])
        assert lab.manager.health() == Health()
        assert lab.toxiproxy.fetch_proxy("refused").enabled is False
        assert lab.toxiproxy.fetch_proxy("weather").enabled

    with_lab(tmp_path, always("refused"), story, clock=clock)


# A log that is lost.


@on_lab(always("latency", **SLOW))
async def test_a_call_that_ends_when_the_log_is_lost_fails_its_run_and_is_over(lab: Bench) -> None:
    row, answer = await lab.seam.lanes.request_lane(CALL, deadline_s=2.0)
    (lab.run.folder / "manager.log").unlink()
    lab.seam.lanes.end_call_with_observation(row, seen(0.06))
    control = ControlDatabase(lab.state)
    eventually(lambda: not control.list_pending_calls([lab.run.name]))
    state, why = control.get_run_state(lab.run.name)
    assert (state, "manager.log cannot be written (it was deleted)" in why) == ("failed", True)
    assert control.get_call_answer(row) == answer  # what the call was told stays as it was
    control.close()
    assert (lab.lanes_left(), lab.manager.status()["lanes"]) == ([], [])


@on_lab(always("latency", **SLOW))
async def test_a_call_that_meets_nothing_fails_too_once_the_log_is_lost(lab: Bench) -> None:
    row, _ = await lab.seam.lanes.request_lane(CALL, deadline_s=2.0)
    (lab.run.folder / "manager.log").unlink()
    lab.seam.lanes.end_call_with_observation(row, MET["latency"])
    with pytest.raises(LabDown, match=r"manager\.log cannot be written \(it was deleted\)"):
        await lab.seam.lanes.request_lane(Call("movies", "search_movies", "p1.r1", 1, 1), deadline_s=2.0)


@pytest.mark.parametrize("what", ["an outage", "a lease that runs out"])
def test_what_cannot_be_written_down_while_nobody_asks_leaves_the_loop_to_other_runs(what: str, tmp_path: Path) -> None:
    clock = Ahead()

    async def story(lab: Bench) -> None:
        await lab.seam.lanes.request_lane(CALL, deadline_s=2.0)
        (lab.run.folder / "manager.log").unlink()
        if what == "an outage":
            lab.toxiproxy.destroy("weather")
        else:
            clock.by_s = 70
            eventually(lambda: not lab.manager.status()["lanes"])
        eventually(lambda: lab.manager.health() == Health(epoch=int(what == "an outage")))
        another(lab)

    with_lab(tmp_path, always("latency", **SLOW), story, clock=clock)


# Runs that cannot be served, and those that are over.


@pytest.mark.parametrize("others", [False, True])
@pytest.mark.parametrize("wrong", ["its log is a folder", "a name that no proxy can have"])
def test_a_run_that_cannot_be_served_takes_nothing_from_another_and_leaves_nothing(
    wrong: str, others: bool, tmp_path: Path
) -> None:
    told: list[str] = []
    with embedded() as url, managed(tmp_path, url, ["weather", "a/b"]) as manager:
        manager.tell = told.append
        if others:
            other = Run.create(tmp_path / "logs", now=NOW)
            open_run(tmp_path / "state.db", other.name, Plan(1), {"weather": "127.0.0.1:9"})
        run = Run.create(tmp_path / "logs", now=NOW)
        if wrong == "its log is a folder":
            (run.folder / "manager.log").mkdir()
        control = ControlDatabase(tmp_path / "state.db")
        target = "weather" if wrong == "its log is a folder" else "a/b"
        control.request_run_setup(run.name, plan=Plan(1).to_json(), targets={target: "127.0.0.1:9"})
        eventually(lambda: control.get_run_state(run.name)[0] != "asked")
        state, why = control.get_run_state(run.name)
        assert state == "failed"
        assert told[-1] == f"run {run.name} cannot be served: {why}"
        assert manager.health() == Health()
        assert set(manager._toxiproxy.proxies()) == ({"weather", "refused"} if others else set())
        control.close()


@on_lab(Plan(1))
async def test_of_two_runs_the_one_that_ends_leaves_the_other_its_proxies(lab: Bench) -> None:
    end(lab, another(lab))
    eventually(lambda: lab.manager.status()["runs"] == [lab.run.name])
    assert lab.manager.health() == Health()
    assert set(lab.toxiproxy.proxies()) == {"weather", "refused"}
    end(lab, lab.run)
    eventually(lambda: not lab.toxiproxy.proxies())


@on_lab(Plan(1))
async def test_a_run_that_has_ended_makes_room_for_the_next_at_once(lab: Bench) -> None:
    end(lab, lab.run)
    another(lab, "127.0.0.1:9")  # another's, were the first still open
    assert lab.toxiproxy.fetch_proxy("weather").upstream == "127.0.0.1:9"


@pytest.mark.parametrize("drops", [True, False])
@on_lab(Plan(1))
async def test_with_the_last_run_goes_its_trouble_and_proxies_that_do_not_go_are_one(
    lab: Bench, *, drops: bool
) -> None:
    toxiproxy: Any = lab.manager._toxiproxy

    def destroy(_: str) -> None:
        raise refuses(lab)

    if not drops:
        toxiproxy.destroy = destroy
    lab.manager._arming.trouble = "something that was"
    end(lab, lab.run)
    eventually(lambda: not lab.manager.status()["runs"])
    assert lab.manager.health().trouble == ("" if drops else "no (HTTP 500)")
    vars(toxiproxy).pop("destroy", None)


@on_lab(Plan(1))
async def test_what_somebody_else_does_to_a_proxy_is_said_and_marks_the_calls_that_it_may_hit(
    lab: Bench, *, monkeypatch: pytest.MonkeyPatch
) -> None:
    def warnings() -> list[str]:
        """After a look at the proxies."""
        assert lab.manager.health() == Health()
        return [event.message for _, event in lab.history().find_events(events.LabWarning)]

    monkeypatch.setattr(manager_module, "EXPIRE_POLL_S", math.inf)  # no look between a call and what somebody does
    assert warnings() == []
    await lab.seam.lanes.request_lane(CALL, deadline_s=2.0)
    lab.toxiproxy.fetch_proxy("weather").add_toxic(name="mine", type="latency", attributes={"latency": 1500})
    (warning,) = warnings()
    assert re.fullmatch(r"not from this lab: latency on weather since \d\d:\d\d:\d\d", warning)
    await lab.seam.lanes.request_lane(replace(CALL, request=2), deadline_s=2.0)
    lab.toxiproxy.fetch_proxy("weather").destroy_toxic("mine")
    assert warnings() == [warning]
    await lab.seam.lanes.request_lane(replace(CALL, request=3), deadline_s=2.0)
    hit = [(event.request, event.why) for _, event in lab.history().find_events(events.CallDisturbed)]
    assert [number for number, _ in hit] == [1, 2]
    assert hit[0][1] == "latency on weather, which is not from this lab, was found after it began"
    assert re.fullmatch(r"latency on weather since \d\d:\d\d:\d\d is not from this lab", hit[1][1])
    gone = [event.what for _, event in lab.history().find_events(events.LabDisturbed)]
    assert gone == ["not from this lab: latency on weather"]
    assert warnings() == [warning]
