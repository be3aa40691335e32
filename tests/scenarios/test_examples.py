"""Each shipped scenario catches its naive agent and passes its careful one."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaoslab.cli import main
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)

FOLDER = Path(__file__).parent.parent.parent / "examples" / "scenarios"
FILES = sorted(FOLDER.glob("*.chaos.yaml"))


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(FOLDER)
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(FOLDER)):
            del sys.modules[name]


def test_there_are_fifteen_and_eight_of_them_are_of_public_reports() -> None:
    assert len(FILES) >= 15
    assert sum("https://github.com/" in file.read_text() for file in FILES) >= 8


@pytest.mark.usefixtures("there")
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name.removesuffix(".chaos.yaml"))
def test_it_catches_a_naive_agent_and_passes_a_careful_one(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = file.name.removesuffix(".chaos.yaml")
    assert main(["test", file.name, "--no-logs"]) == 0, capsys.readouterr().out
    assert main(["test", file.name, "--no-logs", "--fail-fast", "--set", f"fresh={name}:naive"]) == 1, (
        capsys.readouterr().out
    )
