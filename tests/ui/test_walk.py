"""A real browser walks the pages of a real `chaoslab ui`: while a run goes on, by keyboard, on a phone, under axe."""

import io
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from threading import Event

import httpx
import pytest

from chaoslab.cli.ui import serve_in_child
from chaoslab.core.events import FaultWitnessed
from chaoslab.memory.store import FILE, Memory
from chaoslab.record.runs import Run
from chaoslab.record.steering import PAUSED, RunSteering
from tests import warm
from tests.cli_parts import Typed
from tests.event_parts import run_started
from tests.gateway.parts import shop, standing
from tests.reports import hostile_run
from tests.sure import sure
from tests.ui.parts import LOOK, a_campaign, trials
from tests.ui.walking import Browser, browser
from tests.waiting import DEADLINE_S, HUNG_S

SHOP = """def refund(order: int) -> str:
    return "refunded"


def agent(prompt: str) -> str:
    return f"order 17 is {refund(17)}"
"""


OVER = re.compile(r'status of 404 .*/run/[\d-]+/levers"')
"""A gateway may end between two questions after its levers."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("walk")
    list(trials(folder / "logs", trials=120))
    hostile_run.write(folder / "logs" / "20250101-000000", trials=3)
    (folder / "shop.py").write_text(SHOP)
    return folder


@pytest.fixture(scope="module")
def ui(place: Path) -> Iterator[str]:
    """The address that `chaoslab ui` prints first. It ends with Ctrl-C."""
    command = [warm.python(), "-m", "chaoslab", "ui", "logs", "--port", "0", "--no-open"]
    child = subprocess.Popen(command, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    yield sure(child.stdout).readline().strip()
    child.send_signal(signal.SIGINT)
    _, complaints = child.communicate(timeout=HUNG_S)
    assert (child.returncode, complaints) == (130, "")


@pytest.fixture(scope="module")
def page(ui: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as found:
        found.open(ui, ready="document.querySelectorAll('#rows tbody tr').length === 2")
        yield found
        assert [said for said in found.console if not OVER.search(said)] == []


@pytest.fixture
def base(ui: str) -> str:
    return ui.partition("/in/")[0]


ALL_READ = "!document.getElementById('done-said').textContent.includes('read')"


def test_a_run_is_seen_while_it_happens_and_is_steered(page: Browser, base: str, place: Path) -> None:
    page.open(base, ready="document.querySelectorAll('#rows tbody tr').length >= 2")
    going = trials(place / "logs", trials=30, seed=3)
    for _ in range(15):
        next(going)
    page.until("document.querySelector('.going')?.textContent.includes('of 30 done')")
    folder = (place / "logs" / "latest").resolve()
    page.open(
        f"{base}/run/{folder.name}", ready="document.getElementById('done-said').textContent.includes('15 of 30')"
    )
    page.until("document.querySelectorAll('#rows tbody tr').length >= 14")
    harmed = [trial.key for trial in (next(going) for _ in range(10)) if trial.verdict.harm]
    assert harmed
    page.until("document.getElementById('done-said').textContent.includes('25 of 30')")
    page.until(f"document.getElementById('harms').textContent.includes('{harmed[-1]}')")
    for lever, word in (("pause", "resume"), ("resume", "pause")):
        page.do(f"document.querySelector('[data-lever={lever}]').click()")
        page.until(f"document.querySelector('[data-lever={word}]') !== null")
        assert RunSteering.read(folder).hold is (lever == "pause")
    next(going)
    page.do("document.querySelector('[data-lever=stop]').click()")
    page.until("document.getElementById('said').textContent.includes('as by Ctrl-C')")
    with pytest.raises(KeyboardInterrupt):
        list(going)
    page.until("document.getElementById('ended').textContent.includes('interrupted')")
    assert page.do("document.getElementById('levers').children.length") == 0


def click_on_switch(page: Browser, fault: str) -> None:
    page.do(
        f"[...document.querySelectorAll('#faults label')].find((one) => one.textContent.includes('{fault}')).click()"
    )


def test_a_fault_of_a_run_that_goes_on_is_switched_off_and_on(page: Browser, base: str, place: Path) -> None:
    going = trials(place / "logs", trials=40, seed=5)
    folder = sure(next(going).folder)
    page.open(f"{base}/run/{folder.name}", ready="document.querySelectorAll('#faults input:checked').length === 2")
    assert re.search(r"\d faults met", page.do("document.getElementById('figures').textContent"))
    for way, left in (("off", 1), ("on", 2)):
        click_on_switch(page, "server_error on price")
        page.until(f"document.getElementById('said').textContent.includes('is {way} from the next trial on')")
        page.until(f"document.querySelectorAll('#faults input:checked').length === {left}")
        assert RunSteering.read(folder).off == (["server_error on price"] if way == "off" else [])
        met = {
            event.fault
            for trial in (next(going) for _ in range(12))
            for _, event in trial.history.find_events(FaultWitnessed)
        }
        assert ("server_error" in met) is (way == "on")
    list(going)
    page.until("document.getElementById('switches').hidden")
    page.until("document.getElementById('notes').textContent.includes('switched off while the run went on')")


def test_the_proxy_manager_of_a_lab_in_real_time_is_paused_and_goes_on(page: Browser, base: str, place: Path) -> None:
    run = Run.create(place / "logs", now="2026-06-01T09:00:00Z")
    started = run_started(
        settings={"TOXIC_PROB": 0.1, "ERROR_PROB": 0.2},
        plan={"injections": [{"name": "wire"}]},
        prompts=2,
        model="m",
        world="local",
    )
    with run.open_log("info") as info:
        info.write(started)
        button = "document.querySelector('[data-lever^=\"manager=\"]')"
        page.open(f"{base}/run/{run.folder.name}", ready=f"{button}?.textContent === 'Pause the proxy manager'")
        assert page.do("document.querySelectorAll('#levers input[type=range]').length") == 2
        for word in ("Resume", "Pause"):
            page.do(f"{button}.focus()")
            page.press("Enter", text="\r")
            page.until(f"{button}?.textContent === '{word} the proxy manager' && document.activeElement === {button}")
            assert (run.folder / PAUSED).exists() is (word == "Resume")


def test_a_gateway_is_paused_a_fault_of_it_switched_off_and_it_is_stopped(
    page: Browser, base: str, place: Path
) -> None:
    stopped = Event()
    fault = {"fault": "tool_error", "target": "crm", "status": 503, "name": "down"}
    with shop() as server, standing(place / "logs", [f"crm={server.url}"], fault, stop=stopped.set) as running:
        folder, crm = running.book.run.folder, f"{running.make_route_url('crm')}/price/1"
        assert httpx.get(crm).status_code == 503
        page.open(f"{base}/run/{folder.name}", ready="document.getElementById('faults').textContent.includes('1 hit')")
        for lever, word, status in (("pause", "resume", 200), ("resume", "pause", 503)):
            page.do(f"document.querySelector('[data-lever={lever}]').click()")
            page.until(f"document.querySelector('[data-lever={word}]') !== null")
            assert httpx.get(crm).status_code == status
        click_on_switch(page, "down")
        page.until("document.getElementById('said').textContent.includes('is off from the next request on')")
        page.until("document.querySelectorAll('#faults input:checked').length === 0")
        assert httpx.get(crm).status_code == 200
        page.open(base)  # and nothing changes
        assert httpx.get(crm).status_code == 200
        page.open(f"{base}/run/{folder.name}", ready="document.querySelector('[data-lever=stop]') !== null")
        page.do("document.querySelector('[data-lever=stop]').click()")
        assert stopped.wait(DEADLINE_S)
    page.until("document.getElementById('levers').children.length === 0")


def test_the_list_is_searched_and_sorted(page: Browser, base: str) -> None:
    page.open(base, ready="document.getElementById('count').textContent.includes('runs')")
    page.do("document.getElementById('by-text').value = 'owned'")
    page.do("document.getElementById('filter').dispatchEvent(new Event('input'))")
    page.until("document.querySelectorAll('#rows tbody tr').length === 1")
    assert page.do("document.title") == "Runs in logs"
    page.do("document.querySelector('#filter [type=reset]').click()")
    page.until("document.querySelectorAll('#rows tbody tr').length >= 2")
    page.do("document.querySelector('[data-by=run] button').click()")
    page.until("document.querySelector('#rows tbody tr').textContent.includes('20250101')")


def test_a_trial_has_its_story(page: Browser, base: str, place: Path) -> None:
    run = next(folder for folder in sorted((place / "logs").iterdir()) if folder.name > "20250101-000000")
    page.open(
        f"{base}/run/{run.name}", ready=f"document.querySelectorAll('#rows tbody tr').length === 100 && {ALL_READ}"
    )
    page.do("document.getElementById('next').click()")
    page.until("document.querySelectorAll('#rows tbody tr').length === 20")
    page.do("document.getElementById('by-outcome').value = 'unknown'")
    page.do("document.getElementById('filter').dispatchEvent(new Event('input'))")
    page.until("document.querySelector('#rows tbody').textContent.includes('unknown')")
    address = page.do("document.querySelector('#rows tbody a').href")
    page.open(address, ready="document.querySelector('.plot svg') !== null")
    assert page.do("document.querySelectorAll('table.events tbody tr').length") > 4


def test_the_keyboard_reaches_everything(page: Browser, base: str, place: Path) -> None:
    page.open(base, ready="document.querySelector('#rows tbody').textContent.includes('20250101-000000')")
    seen = []
    for _ in range(30):
        page.press("Tab")
        seen.append(page.do("document.activeElement.id || document.activeElement.textContent.trim()"))
    assert seen[0] == "Skip to the content"
    assert {"by-text", "by-state", "by-name", "run", "20250101-000000"} <= {*seen}
    page.do("document.querySelector('[data-by=harmed] button').focus()")
    page.press("Enter", text="\r")
    page.until("document.querySelector('[aria-sort]')?.dataset.by === 'harmed'")
    going = trials(place / "logs", trials=3, seed=7)
    for done in range(1, 4):  # its row is drawn anew, and all others are put beside it
        run = sure(next(going).folder)
        page.until(f"document.querySelector('.going')?.textContent.includes('{done} of 3')")
        if done == 1:
            page.do("document.querySelector('tr:has(.going) a').focus()")
        assert page.do("document.activeElement.textContent") == run.name
    assert list(going) == []


@pytest.mark.parametrize(("width", "dark"), [(390, False), (1280, True)])
def test_axe_finds_nothing_serious(width: int, dark: bool, page: Browser, base: str, place: Path) -> None:
    axe = files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    page.size(width)
    page.dark(dark)
    hostile = f"{base}/run/20250101-000000"
    a_campaign(place / "logs" / "checkout", LOOK)
    Memory(place / "logs" / FILE, make=True).add([place / "logs" / "20250101-000000"])
    for address, ready in (
        (base, "document.querySelectorAll('#rows tbody tr').length > 1"),
        (hostile, "document.querySelectorAll('#rows tbody tr').length === 3"),
        (f"{hostile}/trial/p1.r1", "document.querySelector('table.events') !== null"),
        (f"{base}/campaign/checkout", "document.getElementById('probes').textContent.includes('alert(1)')"),
        (f"{base}/memory", "document.getElementById('relations-h') !== null"),
        (f"{hostile}/log", "document.getElementById('tail').textContent.length > 100"),
    ):
        page.open(address, ready=ready)
        assert page.run_axe(axe) == [], address
        assert page.do("document.documentElement.scrollWidth") <= width, address
        assert page.do("document.querySelectorAll('img, script:not([src]):not([type])').length") == 0
        assert not re.search(r"undefined|NaN|\[object", page.do("document.body.innerText")), address
        if folder := os.environ.get("PICTURES"):
            page.picture(Path(folder) / f"{address.rpartition('/')[2] or 'runs'}-{width}.png")


def test_a_port_in_use_is_one_line(ui: str, place: Path, typed: Typed) -> None:

    port = ui.split(":")[2].partition("/")[0]
    error = typed.refused("ui", place / "logs", "--port", port, "--no-open")
    assert error == f"127.0.0.1:{port} cannot be listened at (Address already in use): give another --port\n"
    assert "this is a file" in typed.refused("ui", place / "shop.py", "--no-open")


def test_the_pages_beside_a_lab_end_with_it(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    with serve_in_child(tmp_path / "logs", told := io.StringIO()):
        address = told.getvalue().strip()
        assert httpx.get(address, follow_redirects=True, timeout=10).status_code == 200
    with pytest.raises(httpx.ConnectError):
        httpx.get(address)
