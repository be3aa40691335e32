"""A part that is not installed, or hidden by a user's file, is named in one line before anything begins."""

import importlib.metadata
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

import chaoslab as lab
from chaoslab import cli
from chaoslab.agent.assembly import make_run_start_event
from chaoslab.agent.prompts import Prompt
from chaoslab.base.clock import system
from chaoslab.base.extras import CORE, MODULES, build_install_command
from chaoslab.config.settings import Settings
from chaoslab.config.topology import Ports
from chaoslab.core.events import PromptStarted
from chaoslab.core.plan import Plan
from chaoslab.record.runs import Run
from chaoslab.scenarios.new_project import render_workflow
from chaoslab.worlds.local import LocalWorld
from tests.cli_parts import Typed, chaoslab, environment, execute, free_base, prompts

ALL = [module for extra in ("tools", "agent", "charts") for module in MODULES[extra]]
LAB = "lab"
PROJECT = Path(__file__).parent.parent / "pyproject.toml"
INSTALLED = re.compile(r"install_line\(['\"]([a-z,]+)['\"]\)")
HIDDEN = 'import sys, runpy; sys.modules.update(dict.fromkeys(sys.argv.pop(1).split(","))); sys.argv.pop(0); '
"""A program: with these modules hidden, as if they were not installed, the module that is named next as a command."""


def without(modules: Sequence[str], *typed: str, folder: Path) -> subprocess.CompletedProcess[str]:
    program = HIDDEN + "runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
    return execute([sys.executable, "-c", program, ",".join(modules), *typed], cwd=folder, env=environment())


def named(*modules: str, who: str, install: str) -> list[tuple[str, str]]:
    return [
        (module, f"{who} needs {module}, which is not installed: {build_install_command(install)}\n")
        for module in modules
    ]


@pytest.mark.parametrize(
    ("words", "missing", "line"),
    [
        (typed.split(), missing, line)
        for typed, expected in {
            "lab": named(*MODULES["tools"], *MODULES["agent"], "matplotlib", who="WORLD=local", install=LAB),
            "run --world virtual": named(*ALL, who="WORLD=virtual", install=LAB),
            "report": named("matplotlib", who="chaoslab report", install="charts"),
            "mcp --url http://127.0.0.1:1": named("mcp", "httpx2", who="--url", install="mcp"),
            "mcp --url http://127.0.0.1:1/mcp": named(*MODULES["mcp"], who="--url", install="mcp"),
            "otlp latest --to http://127.0.0.1:9": named(*MODULES["otel"], who="chaoslab otlp", install="otel"),
            "ui": named("starlette", who="chaoslab ui", install="ui"),
            "model --port 0": named("flask", "waitress", who="chaoslab model", install="tools"),
        }.items()
        for missing, line in [
            *expected,
            *(("opentelemetry.exporter.otlp.proto", line) for name, line in expected[:1] if "otel" in line),
        ]
    ],
    ids=lambda value: "" if isinstance(value, str) and value.endswith("\n") else str(value),
)
def test_each_command_names_what_is_missing(
    words: Sequence[str], missing: str, line: str, here: Path, monkeypatch: pytest.MonkeyPatch, typed: Typed
) -> None:
    for loaded in [name for name in sys.modules if name.startswith(f"{missing}.")]:  # an earlier test may have used it
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, missing, None)
    assert typed(*words) == (2, "", line)
    assert list(here.iterdir()) == []


@pytest.mark.parametrize(
    ("origin", "line"),
    [
        ('{"url": "file:///my%20lab", "dir_info": {"editable": true}}', "pip install -e '/my lab[ui]'"),
        ('{"url": "file:///lab", "dir_info": {}}', "pip install '/lab[ui]'"),
        ('{"url": "https://x.test/lab", "vcs_info": {"vcs": "git", "commit_id": "a1"}}',
         "pip install 'chaoslab[ui] @ git+https://x.test/lab@a1'"),
        ('{"url": "https://x.test/lab.whl", "archive_info": {}}', "pip install 'chaoslab[ui]'"),
        (None, "pip install 'chaoslab[ui]'"),
        ("no JSON", "pip install 'chaoslab[ui]'"),
    ],
)  # fmt: skip
def test_an_extra_is_installed_from_where_the_lab_came(
    origin: str | None, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = SimpleNamespace(read_text={"direct_url.json": origin}.get)
    monkeypatch.setattr(importlib.metadata, "distributions", lambda **_: [package])
    assert build_install_command("ui") == line


def test_so_does_each_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    done = without(["langchain"], "chaoslab", "agent", folder=tmp_path)
    needs = f"chaoslab agent needs langchain, which is not installed: {build_install_command('agent')}\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", needs)
    monkeypatch.setitem(sys.modules, "flask", None)
    assert cli.main(["tools"]) == 2
    line = f"chaoslab tools needs flask, which is not installed: {build_install_command('tools')}\n"
    assert capsys.readouterr() == ("", line)


def test_nothing_begins_without_the_extras_and_what_only_reads_needs_none(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "logs", now=Settings().now)
    with run.open_log("info") as log:
        log.write(make_run_start_event(Settings(), Plan(1), [Prompt(prompt="What is 6 times 7?")], 1, run.now))
        log.write(PromptStarted(prompt_index=1, prompt="What is 6 times 7?"), trial="p1.r1")
    run.link_as_latest()
    there = set(tmp_path.iterdir())
    for typed in ("lab", "replay", "charts", "model"):
        done = without(ALL, "chaoslab", typed, folder=tmp_path)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), typed
        assert " not installed: pip install " in done.stderr
    assert set(tmp_path.iterdir()) == there
    for typed in ("show", "summary"):
        done = without(ALL, "chaoslab", typed, folder=tmp_path)
        assert (done.returncode, done.stderr) == (0, ""), typed


@pytest.mark.usefixtures("here")
def test_a_report_of_no_run_is_refused_before_an_extra_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, typed: Typed
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert typed.refused("report", "nosuch").startswith("no run is called 'nosuch'")


def test_a_run_that_cannot_be_replayed_is_refused_before_an_extra_is_asked_for(
    here: Path, monkeypatch: pytest.MonkeyPatch, typed: Typed
) -> None:
    lab.run(lambda prompt: prompt, "Go.", logs=here / "logs")
    monkeypatch.setitem(sys.modules, "langchain", None)
    assert "was made from Python (lab.run), and the log does not hold that program" in typed.refused("replay")


def test_an_extra_that_a_line_names_exists() -> None:
    """In the package's own lines, which are for people who have it, a name is enough."""
    there = tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"]
    texts = [path.read_text(encoding="utf-8") for path in (PROJECT.parent / "chaoslab").rglob("*.py")]
    named = {extra for text in texts for found in INSTALLED.findall(text) for extra in found.split(",")}
    assert named | MODULES.keys() <= there.keys()
    everything = set(there["all"][0].removeprefix("chaoslab[").removesuffix("]").split(","))
    everything |= set(there["lab"][0].removeprefix("chaoslab[").removesuffix("]").split(","))
    assert everything | {"all", "dev", "docs", "cluster", "otel"} == there.keys()


def test_every_install_line_of_the_documents_works_though_no_index_has_the_package() -> None:
    there = tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"]
    pages = [*PROJECT.parent.glob("*.md"), *(PROJECT.parent / "docs").rglob("*.*")]
    texts = {path: path.read_text(encoding="utf-8") for path in pages if path.suffix in (".md", ".ipynb")}
    lines = [found for path, text in texts.items() for found in re.findall(r"pip install [^`\n]*", text)]
    lines += re.findall("pip install .*", render_workflow("git+https://example.org/chaoslab", test=True))
    lines = [line.replace("\\", "") for line in lines if "pip-audit" not in line]
    assert len(lines) >= 6
    for line in lines:
        found = re.match(r'pip install "chaoslab(?:\[([a-z,]+)\])? @ \$CHAOSLAB"', line)
        assert found is not None, line
        assert set((found[1] or "charts").split(",")) <= there.keys()


def test_another_python_than_the_labs_is_told_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    def lacking(name: str) -> int:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    assert cli._run_for_exit_code(lambda: lacking("msgspec")) == 2
    assert capsys.readouterr().err.startswith(f"this Python ({sys.executable}) lacks msgspec: use the one in")
    with pytest.raises(ModuleNotFoundError):  # a user's own
        cli._run_for_exit_code(lambda: lacking("shop"))
    core = {re.split("[>=]", each)[0] for each in tomllib.loads(PROJECT.read_text())["project"]["dependencies"]}
    modules = {"toxiproxy": "toxiproxy-python", "time_machine": "time-machine", "yaml": "pyyaml"}
    assert {modules.get(name, name) for name in CORE} == core


PARTS = ("agent", "flask_tools", "proxy_manager")


def test_files_of_the_users_may_have_the_names_of_the_labs_parts(tmp_path: Path) -> None:
    """`python -m chaoslab` looks in this folder first, for modules and packages."""
    taken(tmp_path, "agent/__init__.py", "flask_tools.py", "proxy_manager.py", "logs.py", "charts.py", "state.py")
    done = chaoslab(tmp_path, "run", "--world", "virtual", prompts(tmp_path, ["What is 6 times 7?"]), really=True)
    assert (done.returncode, "mine" in done.stderr) == (0, False)


def taken(folder: Path, *files: str) -> None:
    for file in files:
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_text("raise SystemExit('this is mine')\n")


def test_the_parts_are_found_where_the_command_itself_is(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """`chaoslab` does not look in this folder for them, nor does this process; no part that it starts may either."""
    taken(here, *(f"{part}.py" for part in PARTS), "logs.py")
    ports, run = Ports(free_base()), Run.create(Path("logs"), now=Settings().now)
    variables = environment() | Settings().override({"BASE_PORT": str(ports.base)}).to_environment()
    with LocalWorld(ports, Path("logs"), Path("state.db"), run.folder, variables, system) as world:
        world.start_services(now=run.now, toxiproxy=True, model=True)
        assert world.run_agent(["--help"]) == 0
    assert capfd.readouterr().out.startswith("usage: chaoslab agent")


MINE = """
import chaoslab as lab

def pay(amount):
    return "paid"

def agent(prompt):
    return pay(3)

for world in ("virtual", "local"):
    print(lab.run(
        agent, "Pay.", tools=[pay], effects=[{"effect": "pay", "amount": 3}], world=world, logs="runs"
    ).outcome)
print(*(trial.outcome for trial in lab.run_many(agent, "Pay.", tools=[pay], trials=2, jobs=2)))
"""


def test_a_program_of_the_users_may_stand_beside_files_of_any_name(tmp_path: Path) -> None:
    taken(tmp_path, *(f"{part}.py" for part in PARTS), "logs.py", "charts.py")
    (tmp_path / "mine.py").write_text(MINE)
    done = execute([sys.executable, "mine.py"], cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["correct"] * 4
