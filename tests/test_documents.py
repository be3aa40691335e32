"""The documents agree with the code and each other: generated ones are up to date, and what they name is there."""

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from chaoslab.base import registry
from chaoslab.cli import COMMANDS
from chaoslab.config.settings import render_markdown_table
from chaoslab.scenarios.new_project import read_skill_page
from docs import picture, reference
from tests.cli_parts import execute
from tests.test_readme import PAGES, ROOT, TEXT

DOCS = ROOT / "docs"
ALL = [*PAGES, ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"]
USERS = {
    "steering.json",
    "seen.json",
    "levers.json",
    "flask_tools/dice.py",
    "data/dice.json",
    "mine.json",
    "chaos-baseline.json",
    "../chaos-baseline.json",
    "run.json",
    "recorded.json",
    "service.json",
    "openapi.yaml",
    "orders.chaos.yaml",
    "over_http.chaos.yaml",
    "tools.json",
    "trace_1.chaos.yaml",
    "faults.json",
    "/data/mine.json",
    "chaoslab/faults/tool/empty_reply.py",
    "tests/faults/test_fault_empty_reply.py",
    "chaoslab/core/triggers/odd.py",
    "chaoslab/analysis/assertions/calls_something.py",
    "chaoslab/wire/toxics/late_start.py",
    "chaoslab/reports/contents/advice/slow_success.py",
    "chaoslab/reports/formats/outcomes.py",
    "chaoslab/cli/latest.py",
    "chaoslab/analysis/measures/slowest.py",
    "chaoslab/reports/charts/slowest_call.py",
    "request.json",
    "limits.json",
    "my_agent.py",
    "my_app.py",
    "FILE.py",
    "chaos_run.json",
    "scenarios/quickstart.py",
    "answer.chaos.yaml",
    ".chaos.yaml",
}
"""Files of a reader's own, those of a run and of the walk-through too, and an attribute that looks like one."""
made = cache(reference.pages)
"""The pages of the reference: made by the first test that reads them, since each worker collects these."""
TREES = [
    ROOT / name
    for name in (
        "chaoslab",
        "agent",
        "flask_tools",
        "proxy_manager",
        "containers",
        "benchmarks",
        "docs",
        "tests",
        "examples",
    )
]
LISTED = execute(["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"], check=True)
THERE = [f"/{name}" for name in LISTED.stdout.splitlines()]
"""The project's own files. A run that someone made in an example's folder is none of them, so git says which are."""
CODE = [path for tree in TREES[:4] for path in tree.rglob("*.py")]


class _Loader(yaml.SafeLoader):
    """Takes a Python name in mkdocs.yml as its text."""


_Loader.add_multi_constructor("tag:yaml.org,2002:python/name:", lambda _loader, name, _node: name)


@pytest.mark.parametrize("name", sorted(path.name for path in (DOCS / "reference").iterdir()))
def test_the_reference_is_what_the_code_says(name: str) -> None:
    assert (DOCS / "reference" / name).read_text(encoding="utf-8") == made()[name], "run: python docs/reference.py"


def test_the_page_for_coding_agents_is_the_one_that_init_writes() -> None:
    assert (DOCS / "for-coding-agents.md").read_text(encoding="utf-8") == read_skill_page(), (
        "run: python docs/reference.py"
    )


def test_each_page_that_llms_txt_names_is_there() -> None:
    named = re.findall(r"\]\(([^)]+)/\)", (DOCS / "llms.txt").read_text(encoding="utf-8"))
    assert len(named) > 10
    assert [page for page in named if not (DOCS / f"{page}.md").is_file()] == []


def test_there_is_no_page_of_the_reference_that_is_not_made() -> None:
    assert {path.name for path in (DOCS / "reference").iterdir()} == set(made())


def test_what_has_a_page_of_its_own_is_not_said_again_on_the_page_of_python() -> None:
    section = made()["python.md"].partition("## lab.inject\n")[2].partition("\n## ")[0]
    assert "[Faults](faults.md) has those parameters." in section
    assert [name for name in registry.list_plugins("faults") if f"- {name}(" in made()["python.md"]] == []
    assert made()["python.md"].count("secret_names: Sequence") == 1


def test_the_table_of_settings_is_the_codes() -> None:
    assert render_markdown_table() in (DOCS / "reference" / "settings.md").read_text(encoding="utf-8")


def test_every_command_and_each_of_its_options_is_in_the_reference() -> None:
    text = made()["commands.md"]
    assert re.findall(r"^## chaoslab ([\w-]+)$", text, flags=re.MULTILINE) == list(COMMANDS)
    assert "| `--trials TRIALS` | trials in all (TRIALS) |" in text
    assert "%(" not in text


def test_the_picture_shows_what_the_readmes_program_finds() -> None:
    story = picture.story()
    assert story.splitlines()[-1].split() == ["verdict", "harm:", "refund", "twice"]
    assert picture.PICTURE.read_text(encoding="utf-8") == picture.drawn(story), "run: python docs/picture.py"


def test_a_release_fits_a_page_of_the_change_log() -> None:
    releases = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## ")[1:]
    assert {
        release.splitlines()[0]: len(release.splitlines()) for release in releases if release.count("\n") > 90
    } == {}


def test_the_readme_fits_a_minute() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


@pytest.mark.parametrize("page", ALL, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []


def test_a_page_of_the_site_links_only_to_the_site() -> None:
    for page in DOCS.rglob("*.md"):
        for link in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
            assert "://" in link or (page.parent / link).resolve().is_relative_to(DOCS), (page, link)


def test_every_page_is_in_the_sites_navigation() -> None:
    site = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), _Loader)
    assert sorted(_leaves(site["nav"])) == sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))


def _leaves(nav: Any) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    return [leaf for part in (nav.values() if isinstance(nav, dict) else nav) for leaf in _leaves(part)]


@pytest.mark.parametrize("page", ALL, ids=lambda page: page.stem)
def test_the_files_that_a_document_names_exist(page: Path) -> None:
    named = set(re.findall(r"(?<![\w/.<>-])[\w./-]+\.(?:py|json|yaml|toml)\b", page.read_text(encoding="utf-8")))
    assert _missing(named - USERS) == []


def test_the_files_that_the_code_names_exist() -> None:
    """In docstrings and comments: `trial.py`, or (trial.py)."""
    for path in CODE:
        named = set(re.findall(r"[`(]([\w/]+\.py)[`)]", path.read_text(encoding="utf-8")))
        assert _missing(named) == [], path


QUESTION = r"((what|who|whose|whom|which|where|when|how|why)(ever)?|whether)\b"


def test_a_docstring_begins_with_its_subject_and_no_question_word() -> None:
    """Only the files are parsed in which some text begins so: most of the time is the parser's."""
    begins = re.compile(rf"""["']\s*{QUESTION}""", re.IGNORECASE)
    texts = {path: path.read_text(encoding="utf-8") for tree in TREES for path in tree.rglob("*.py")}
    assert [
        f"{path}: {said}"
        for path, text in texts.items()
        if begins.search(text)
        for said in _docstrings(text)
        if re.match(QUESTION, said, re.IGNORECASE)
    ] == []


def _docstrings(source: str) -> Iterator[str]:
    """The texts below modules, classes, functions and variables."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(ast.Constant(str(text))):
                yield text.strip()


def _missing(named: set[str]) -> list[str]:
    """Those of which there is no file, by the path or the end of it."""
    return [name for name in sorted(named) if not any(path.endswith(f"/{name}") for path in THERE)]


def test_each_example_of_a_file_can_be_read() -> None:
    examples = re.findall(r"```(json|toml)\n(.*?)```", TEXT, flags=re.DOTALL)
    assert len(examples) >= 3
    for kind, text in examples:
        assert {"json": json.loads, "toml": tomllib.loads}[kind](text)


def test_the_rooms_are_those_of_the_import_contract() -> None:
    picture = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    rooms = [contract["layers"] for contract in contracts if contract["type"] == "layers"]
    assert [re.findall(rf'{node}\d+\["([\w |]+)', picture) for node in "rv"] == rooms


def test_the_page_of_the_faults_names_every_one_under_its_family() -> None:
    rows = dict(re.findall(r"^\| (\w+) \| (\[`.*) \|$", made()["faults.md"], flags=re.MULTILINE))
    named = {fault: family for family in rows for fault in re.findall(r"`(\w+)`", rows[family])}
    for fault, module in registry.map_bundled_plugins("faults").items():
        assert named.get(fault) == module.split(".")[-2], fault
