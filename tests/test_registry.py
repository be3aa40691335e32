"""A plug-in is found by its file's name or by its entry point; a typo is told what it may have meant."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaoslab import faults
from chaoslab.base import registry
from chaoslab.faults.network.latency import Latency
from chaoslab.faults.tool.lost_reply import LostReply
from tests import plugin_parts


def test_the_file_is_the_fault() -> None:
    assert registry.load_plugin("faults", "latency") is Latency
    assert registry.load_plugin("faults", "lost_reply") is LostReply
    files = {path.stem for path in Path(faults.__path__[0]).rglob("[!_]*.py")}
    assert files == set(registry.list_plugins("faults"))


@pytest.mark.parametrize("name", registry.list_plugins("faults"))
def test_every_fault_offers_what_a_fault_must(name: str) -> None:
    from chaoslab.core.plan import LAYERS

    fault = registry.load_plugin("faults", name)()
    assert fault.layer in LAYERS
    assert all(callable(getattr(fault, part)) for part in ("draw", "flow", "toxics", "witnessed"))
    by_wire = bool(fault.toxics()) or (fault.refuses and fault.refuses_at == "connection")
    assert by_wire is (fault.layer == "wire")


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("latancy", "no fault is called 'latancy': did you mean 'latency'?"),
        ("lost-reply", "did you mean 'lost_reply'?"),
        ("xyz", f"known are {registry.list_plugins('faults')[0]}, "),
        ("../clock", "no fault is called"),
        ("", "no fault is called ''"),
    ],
)
def test_a_typo_is_told_what_it_may_have_meant(wrong: str, hint: str) -> None:
    with pytest.raises(LookupError) as error:
        registry.load_plugin("faults", wrong)
    assert hint in error.value.args[0]


def test_where_nothing_is_known_there_is_no_list_of_it() -> None:
    assert registry.suggest_name("x", []) == "there is none"


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
    registry.load_plugin.cache_clear()


def test_a_plug_in_that_is_installed_meanwhile_is_found(request: pytest.FixtureRequest) -> None:
    """As in a notebook that goes on."""
    with pytest.raises(LookupError, match="no fault is called 'gremlin'"):
        registry.load_plugin("faults", "gremlin")
    assert "gremlin" not in registry.list_plugins("faults")
    request.getfixturevalue("installed")
    assert registry.load_plugin("faults", "gremlin").__name__ == "Sock"
    assert "gremlin" in registry.list_plugins("faults")


@pytest.mark.usefixtures("installed")
def test_a_plug_in_from_outside_is_found_by_its_entry_point() -> None:
    assert "gremlin" in registry.list_plugins("faults")
    assert "latency" in registry.list_plugins("faults")
    assert registry.load_plugin("faults", "gremlin").__name__ == "Sock"
    with pytest.raises(LookupError, match="did you mean 'gremlin'"):
        registry.load_plugin("faults", "gremlins")


FATAL = ["raise SystemExit(0)", "raise KeyboardInterrupt", "class B(BaseException): ...\nraise B('x')", "1 / 0"]


@pytest.mark.parametrize("source", FATAL)
@pytest.mark.parametrize("group", ["faults", "core.triggers", "wire.toxics", "analysis.assertions", "seams.adapters"])
def test_whatever_a_plug_in_raises_at_its_import_is_its_own(group: str, source: str, tmp_path: Path) -> None:
    with plugin_parts.installed(tmp_path, source, group=group), pytest.raises(registry.BrokenPlugin) as error:
        registry.load_plugin(group, "gremlin")
    assert re.fullmatch(r"the \w+ 'gremlin' of the package gremlins 1.0 cannot be used: \w+.*", error.value.args[0])


def test_a_bundled_name_is_the_lab_s_own(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A package that took a bundled name would change the meaning of every plan that has it."""
    with plugin_parts.installed(tmp_path, plugin_parts.STALE, fault="latency"):
        assert registry.load_plugin("faults", "latency") is Latency
        assert "latency" not in registry.list_installed_plugins("faults")
        registry.list_plugins("faults")
    assert caplog.messages == [
        "the fault 'latency' of the package gremlins 1.0 is not used: chaoslab has one of this name"
    ]


def test_one_package_does_not_take_the_name_of_another(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "other-2.0.dist-info").mkdir()
    (tmp_path / "other-2.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 2.0\n")
    (tmp_path / "other-2.0.dist-info" / "entry_points.txt").write_text("[chaoslab.faults]\ngremlin = other:Sock\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(tmp_path))
        with plugin_parts.installed(tmp_path / "one", plugin_parts.STALE):
            assert registry.load_plugin("faults", "gremlin").__module__ == "gremlins"
    assert caplog.messages == [
        "the fault 'gremlin' of the package other 2.0 is not used: the package gremlins 1.0 has one of this name"
    ]


@pytest.mark.parametrize(
    "text", ["[chaoslab.faults]\nno equals sign\n", "[chaoslab.faults\n=\n", "x = y:Z\n", "\xff\xfe"]
)
def test_a_file_of_entry_points_that_is_none_is_one_line(
    text: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with plugin_parts.installed(tmp_path, plugin_parts.STALE):
        (tmp_path / "gremlins-1.0.dist-info" / "entry_points.txt").write_bytes(text.encode("latin-1"))
        registry._read.packages = None
        registry._read.by_folder.clear()
        assert registry.load_plugin("faults", "latency") is Latency
        assert "gremlin" not in registry.list_plugins("faults")
    assert len(caplog.messages) <= 1
    for said in caplog.messages:
        assert said.startswith("the plug-ins of the package gremlins are not used: its entry_points.txt is malformed")
