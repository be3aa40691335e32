"""A plug-in is found by its file's name or by its entry point; a typo is told what it may have meant."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaoslab import faults
from chaoslab.base import registry
from chaoslab.faults.network.latency import Latency
from chaoslab.faults.tool.lost_reply import LostReply


def test_the_file_is_the_fault() -> None:
    assert registry.load("faults", "latency") is Latency
    assert registry.load("faults", "lost_reply") is LostReply
    files = {path.stem for path in Path(faults.__path__[0]).rglob("[!_]*.py")}
    assert files == set(registry.names("faults"))


@pytest.mark.parametrize("name", registry.names("faults"))
def test_every_fault_offers_what_a_fault_must(name: str) -> None:
    from chaoslab.core.plan import LAYERS

    fault = registry.load("faults", name)()
    assert fault.layer in LAYERS
    assert all(callable(getattr(fault, part)) for part in ("draw", "flow", "toxics", "witnessed"))
    by_wire = bool(fault.toxics()) or (fault.refuses and fault.refuses_at == "connection")
    assert by_wire is (fault.layer == "wire")


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("latancy", "no fault is called 'latancy': did you mean 'latency'?"),
        ("lost-reply", "did you mean 'lost_reply'?"),
        ("xyz", f"known are {registry.names('faults')[0]}, "),
        ("../clock", "no fault is called"),
        ("", "no fault is called ''"),
    ],
)
def test_a_typo_is_told_what_it_may_have_meant(wrong: str, hint: str) -> None:
    with pytest.raises(LookupError) as error:
        registry.load("faults", wrong)
    assert hint in error.value.args[0]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A distribution from outside of the tree that brings the fault `gremlin`."""
    (tmp_path / "gremlins.py").write_text("class Sock:\n    layer = 'tool'\n")
    about = tmp_path / "gremlins-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: gremlins\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[chaoslab.faults]\ngremlin = gremlins:Sock\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    monkeypatch.undo()
    sys.modules.pop("gremlins", None)
    registry.load.cache_clear()


def test_a_plug_in_that_is_installed_meanwhile_is_found(request: pytest.FixtureRequest) -> None:
    """As in a notebook that goes on."""
    with pytest.raises(LookupError, match="no fault is called 'gremlin'"):
        registry.load("faults", "gremlin")
    assert "gremlin" not in registry.names("faults")
    request.getfixturevalue("installed")
    assert registry.load("faults", "gremlin").__name__ == "Sock"
    assert "gremlin" in registry.names("faults")


@pytest.mark.usefixtures("installed")
def test_a_plug_in_from_outside_is_found_by_its_entry_point() -> None:
    assert "gremlin" in registry.names("faults")
    assert "latency" in registry.names("faults")
    assert registry.load("faults", "gremlin").__name__ == "Sock"
    with pytest.raises(LookupError, match="did you mean 'gremlin'"):
        registry.load("faults", "gremlins")
