"""Labs at once: each on its own ports and in its own run; on one Toxiproxy the second says who is there already."""

from pathlib import Path

from chaoslab.config.topology import Ports
from chaoslab.core import events
from chaoslab.record.history import History
from chaoslab.wire.toxiproxy_package import ToxiproxyServer
from tests import warm
from tests.cli_parts import chaoslab, free_base, prompts
from tests.hard.dying_parts import Lab, lab, mortal

ASKED = ("What is 17 times 24?", "What is the weather in Oslo?") * 2
FAULTY = ("TOXIC_PROB=0.4", "TOXICS=latency", "LATENCY_MS=30", "JITTER_MS=0", "ERROR_PROB=0", "SEED=5")
Met = set[tuple[str | None, str, int, int]]


def met(it: Lab, run: Path) -> Met:
    history = History.read(run)
    (end,) = [event for _, event in history.find_events(events.RunFinished)]
    assert (end.reason, end.processed) == ("done", len(ASKED)), it.said
    assert not list(history.find_events(events.LabDisturbed))
    return {(r.trial, e.target, e.request, e.attempt) for r, e in history.find_events(events.FaultWitnessed)}


def run_of(it: Lab) -> Path:
    """Two labs of one folder share its logs: what a lab said tells which run is its own."""
    return it.folder / "logs" / it.said.partition("run ")[2].partition(":")[0]


def test_labs_from_one_folder_do_not_meet(tmp_path: Path) -> None:
    """Those of two folders share less: nothing but the machine's ports."""
    settings = (prompts(tmp_path, ASKED), *FAULTY)
    first, second = free_base(), free_base()
    with (
        lab(tmp_path, *settings, base=first, python=warm.python()) as a,
        lab(tmp_path, *settings, base=second, said="second.txt", python=warm.python()) as b,
    ):
        labs = (a, b)
        assert [it.ended() for it in labs] == [0, 0], [it.said for it in labs]
        runs = [run_of(it) for it in labs]
        assert len(set(runs)) == 2
        one, other = (met(it, run) for it, run in zip(labs, runs, strict=True))
    assert len(one) >= 3
    assert other == one  # each had its own faults, and all of them


def test_a_second_lab_on_one_toxiproxy_says_who_holds_it_and_harms_nobody(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    settings = (prompts(tmp_path, ASKED * 10), "TOXIC_PROB=1", "TOXICS=latency", "LATENCY_MS=400", "ERROR_PROB=0")
    first, second = free_base(), free_base()
    with mortal("real") as toxiproxy, ToxiproxyServer(toxiproxy.url) as client:
        shared = f"TOXIPROXY_URL={toxiproxy.url}"
        with lab(here, *settings, shared, base=first, python=warm.python()) as a:
            a.until("info.log", '"kind": "call_finished"')
            refused = chaoslab(there, "lab", f"BASE_PORT={second}", *settings, shared)
            assert refused.returncode == 3
            held = (
                f"127.0.0.1:{Ports(first).get_proxy_port('search')} for "
                f"127.0.0.1:{Ports(first).get_service_port('search')}"
            )
            assert refused.stderr == (
                f"the lab is down: 'search' on the Toxiproxy at {toxiproxy.url} is another's: it listens on {held}; "
                "end that lab, or delete 'search' if it was left behind\n"
            )
            assert client.fetch_proxy("search").listen == f"127.0.0.1:{Ports(first).get_proxy_port('search')}"
            a.interrupt()
            assert a.ended() == 130, a.said
            assert not list(History.read(a.run).find_events(events.LabDisturbed))
        assert client.proxies() == {}  # and the next one finds it free
