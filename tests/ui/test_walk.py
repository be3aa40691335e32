"""A real browser walks the pages of a real `chaoslab ui`: while a run goes on, by keyboard, on a phone, under axe."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from chaoslab.memory.store import FILE, Memory
from chaoslab.record.steering import Steering
from tests.reports import hostile_run
from tests.ui.parts import LOOK, a_campaign, trials
from tests.ui.walking import Browser, browser

SHOP = """def refund(order: int) -> str:
    return "refunded"


def agent(prompt: str) -> str:
    return f"order 17 is {refund(17)}"
"""
SCENARIO = """name: refund
agent: shop:agent
tools: [shop:refund]
prompt: Refund order 17.
trials: 3
accept: [correct, degraded, failed, harm, wrong, unknown]
faults:
  - {fault: latency, target: refund, delay_s: 1}
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("walk")
    list(trials(folder / "logs", trials=120))
    hostile_run.write(folder / "logs" / "20250101-000000", trials=3)
    (folder / "shop.py").write_text(SHOP)
    (folder / "refund.chaos.yml").write_text(SCENARIO)
    return folder


@pytest.fixture(scope="module")
def ui(place: Path) -> Iterator[str]:
    """The address that `chaoslab ui` prints first. It ends with Ctrl-C."""
    command = [sys.executable, "-m", "chaoslab", "ui", "logs", "--port", "0", "--no-open"]
    child = subprocess.Popen(command, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    yield child.stdout.readline().strip()
    child.send_signal(signal.SIGINT)
    _, complaints = child.communicate(timeout=30)
    assert (child.returncode, complaints) == (130, "")


@pytest.fixture(scope="module")
def page(ui: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as found:
        found.open(ui, ready="document.querySelectorAll('#rows tbody tr').length === 2")
        yield found
        assert found.console == []


@pytest.fixture
def base(ui: str) -> str:
    return ui.partition("/in/")[0]


ALL_READ = "!document.getElementById('done-said').textContent.includes('read')"


def test_a_run_is_seen_while_it_happens_and_is_steered(page: Browser, base: str, place: Path) -> None:
    page.open(base, ready="document.querySelectorAll('#rows tbody tr').length === 2")
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
        assert Steering.read(folder).hold is (lever == "pause")
    next(going)
    page.do("document.querySelector('[data-lever=stop]').click()")
    page.until("document.getElementById('said').textContent.includes('as by Ctrl-C')")
    with pytest.raises(KeyboardInterrupt):
        list(going)
    page.until("document.getElementById('ended').textContent.includes('interrupted')")
    assert page.do("document.getElementById('levers').children.length") == 0


def test_a_scenario_is_started_with_other_knobs(page: Browser, base: str, place: Path) -> None:
    page.open(base, ready="document.getElementById('count').textContent.includes('runs')")
    page.do("document.querySelector('#start [name=trials]').value = '2'")
    page.do("document.querySelector('#start button').click()")
    page.until("document.getElementById('children').textContent.includes('ended with exit code')")
    said = page.do("document.getElementById('children').textContent")
    assert "test refund.chaos.yml --logs logs --trials 2" in said
    assert "exit code 0" in said, said
    page.until("[...document.querySelectorAll('#rows tbody tr')].some((row) => row.textContent.includes('refund'))")
    assert (place / "logs" / "latest" / "rulings.jsonl").exists()


def test_the_list_is_searched_and_sorted_and_two_runs_are_compared(page: Browser, base: str) -> None:
    page.open(base, ready="document.getElementById('count').textContent.includes('runs')")
    page.do("document.getElementById('by-text').value = 'owned'")
    page.do("document.getElementById('filter').dispatchEvent(new Event('input'))")
    page.until("document.querySelectorAll('#rows tbody tr').length === 1")
    assert page.do("document.title") == "Runs in logs"
    page.do("document.querySelector('#filter [type=reset]').click()")
    page.until("document.querySelectorAll('#rows tbody tr').length > 2")
    page.do("document.querySelector('[data-by=run] button').click()")
    page.until("document.querySelector('#rows tbody tr').textContent.includes('20250101')")
    page.do("[...document.querySelectorAll('#rows tbody input')].slice(-2).forEach((box) => box.click())")
    page.do("document.getElementById('compare').click()")
    page.until("document.querySelector('h1')?.textContent.match(/to compare|pairs? of trials/) !== null")


def test_a_trial_has_its_story_and_is_labelled(page: Browser, base: str, place: Path) -> None:
    run = next(folder for folder in sorted((place / "logs").iterdir()) if folder.name.startswith("2026"))
    page.open(
        f"{base}/run/{run.name}", ready=f"document.querySelectorAll('#rows tbody tr').length === 100 && {ALL_READ}"
    )
    page.do("document.getElementById('next').click()")
    page.until("document.querySelectorAll('#rows tbody tr').length === 20")
    page.do("document.getElementById('by-outcome').value = 'unknown'")
    page.do("document.getElementById('filter').dispatchEvent(new Event('input'))")
    page.until("document.querySelector('#rows tbody').textContent.includes('unknown')")
    address = page.do("document.querySelector('#rows tbody a').href")
    page.open(address, ready="document.querySelector('.plot svg') !== null && document.querySelector('button.label')")
    assert page.do("document.querySelectorAll('table.events tbody tr').length") > 4
    page.do("document.querySelector('[data-said=\"admits it\"]').click()")
    page.until("document.getElementById('trial-h').textContent.includes('degraded')")


def test_the_keyboard_reaches_everything(page: Browser, base: str) -> None:
    page.open(base, ready="document.querySelectorAll('#rows tbody a').length > 1")
    seen = []
    for _ in range(30):
        page.press("Tab")
        seen.append(page.do("document.activeElement.id || document.activeElement.textContent.trim()"))
    assert seen[0] == "Skip to the content"
    assert {"by-text", "by-state", "by-name", "run", "20250101-000000"} <= {*seen}
    page.do("document.querySelector('[data-by=harmed] button').focus()")
    page.press("Enter", text="\r")
    page.until("document.querySelector('[aria-sort]')?.dataset.by === 'harmed'")


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
        if folder := os.environ.get("PICTURES"):
            page.picture(Path(folder) / f"{address.rpartition('/')[2] or 'runs'}-{width}.png")


def test_a_port_in_use_is_one_line(ui: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from chaoslab.cli import main

    port = ui.split(":")[2].partition("/")[0]
    assert main(["ui", str(place / "logs"), "--port", port, "--no-open"]) == 2
    assert (
        capsys.readouterr().err
        == f"127.0.0.1:{port} cannot be listened at (Address already in use): give another --port\n"
    )
    assert main(["ui", str(place / "shop.py"), "--no-open"]) == 2
    assert "this is a file" in capsys.readouterr().err
