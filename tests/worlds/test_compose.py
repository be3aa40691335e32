"""The world of containers is refused in a line where there can be none; `docker` itself is a stand-in here, and tried in tests/live."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chaoslab.worlds import compose
from chaoslab.worlds.compose import WorldError

INFO, PLUGIN, UP, CHARTS, DOWN = "info", "compose version", "compose up", "compose run", "compose down"


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to compose in, and a `docker` that writes down what it is asked and fails where a file says so."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docker-compose.yaml").touch()
    program = tmp_path / "bin" / "docker"
    program.parent.mkdir()
    program.write_text(
        f"""#!/bin/sh
echo "$*" >> {tmp_path}/asked
case "$1 $2" in
  "info "*) exit $(cat {tmp_path}/info 2>/dev/null || echo 0) ;;
  "compose version") exit $(cat {tmp_path}/plugin 2>/dev/null || echo 0) ;;
  "compose up") exit $(cat {tmp_path}/up 2>/dev/null || echo 0) ;;
esac
"""
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


def asked(folder: Path) -> list[str]:
    """The first two words of each call, but the program's own."""
    lines = (folder / "asked").read_text().splitlines() if (folder / "asked").exists() else []
    return [" ".join(line.split()[:2]) for line in lines]


@pytest.mark.parametrize("code", [0, 3, 130])
def test_a_run_that_began_has_its_report_and_all_is_taken_down(docker: Path, code: int) -> None:
    (docker / "up").write_text(str(code))
    assert compose.run(os.environ) == code
    assert asked(docker) == [INFO, PLUGIN, UP, CHARTS, DOWN]
    assert all((docker / name).is_dir() for name in ("logs", "state", "charts", "data"))


@pytest.mark.parametrize("code", [1, 2, 17])
def test_a_run_that_never_began_is_taken_down_without_one(docker: Path, code: int) -> None:
    (docker / "up").write_text(str(code))
    assert compose.run(os.environ) == code
    assert asked(docker) == [INFO, PLUGIN, UP, DOWN]


def test_the_settings_in_force_reach_it(docker: Path) -> None:
    (docker / "bin" / "docker").write_text(f'#!/bin/sh\necho "$TRIALS" >> {docker}/trials\n')
    compose.run({**os.environ, "TRIALS": "7"})
    assert set((docker / "trials").read_text().split()) == {"7"}


def test_without_an_engine_nothing_is_begun(docker: Path) -> None:
    (docker / "info").write_text("1")
    with pytest.raises(WorldError, match=r"^no Docker engine answers: start Docker, or use WORLD=local"):
        compose.run(os.environ)
    assert asked(docker) == [INFO]
    assert not (docker / "logs").exists()


def test_without_the_plug_in_nothing_is_begun(docker: Path) -> None:
    (docker / "plugin").write_text("1")
    with pytest.raises(WorldError, match=r"^docker has no 'compose' plug-in"):
        compose.run(os.environ)
    assert asked(docker) == [INFO, PLUGIN]


def test_without_docker_at_all(docker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(docker))
    with pytest.raises(WorldError, match=r"^no Docker engine answers"):
        compose.run(os.environ)


def test_in_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WorldError, match=r"^there is no docker-compose\.yaml here"):
        compose.run(os.environ)
