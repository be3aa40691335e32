"""The server's own process takes the quickest event loop there is, and as many files as the system grants."""

import asyncio
import resource
import subprocess
import sys

import pytest

from chaoslab.cli import main
from chaoslab.wire.server.process import choose_loop_factory, raise_open_file_limit


@pytest.fixture
def without_uvloop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)


def test_uvloop_is_taken_where_it_is_installed() -> None:
    uvloop = pytest.importorskip("uvloop")
    assert choose_loop_factory("auto") is choose_loop_factory("uvloop") is uvloop.new_event_loop
    assert choose_loop_factory("asyncio") is asyncio.new_event_loop


@pytest.mark.usefixtures("without_uvloop")
def test_without_uvloop_the_plain_loop_does() -> None:
    assert choose_loop_factory("auto") is choose_loop_factory("asyncio") is asyncio.new_event_loop


@pytest.mark.usefixtures("without_uvloop")
def test_asking_for_uvloop_without_it_gets_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["toxiproxy", "--port", "0", "--loop", "uvloop"]) == 2
    assert capsys.readouterr().err == (
        "uvloop is not installed here; the extra `fast` brings it, `--loop asyncio` does without\n"
    )


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_the_server_says_on_which_loop_it_is_ready(loop: str) -> None:
    if loop == "uvloop":
        pytest.importorskip("uvloop")
    command = (sys.executable, "-m", "chaoslab", "toxiproxy", "--port", "0", "--loop", loop)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as served:
        assert served.stdout is not None
        said = served.stdout.readline()
        served.terminate()
    assert said.startswith("ready: toxiproxy on 127.0.0.1:")
    assert said.endswith(f" ({loop})\n")
    assert served.returncode == 0


def test_the_soft_limit_of_files_is_lifted_to_the_hard_one() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 500), hard))
    try:
        raise_open_file_limit()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
