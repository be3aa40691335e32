"""Five agents die at every call of theirs: the careless charge twice, and the careful do everything once."""

from pathlib import Path
from typing import Any

import pytest

import chaoslab as lab
from tests import dying_agents

ENOUGH = 18
"""The trials for the ten deaths at five calls. One that draws chance would be tried on nine others at each of them."""


def run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, careful: bool) -> tuple[Any, dict[str, Any]]:
    (folder := tmp_path / "kept").mkdir()
    monkeypatch.setattr(dying_agents, "FOLDER", folder)
    start, work = dying_agents.pair(name, careful=careful)
    options = {
        "tools": [dying_agents.charge, dying_agents.mail], "resume_with": work, "models": ["api.openai.com"],
        "services": {"api.openai.com": dying_agents.model},
    }  # fmt: skip
    return start, options


@pytest.mark.parametrize("careful", [False, True])
@pytest.mark.parametrize("name", sorted(dying_agents.AGENTS))
def test_a_search_finds_what_an_agent_does_twice(
    name: str, careful: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, options = run(name, tmp_path, monkeypatch, careful=careful)
    found = lab.explore(start, "Charge order 17.", tries=["agent_dies"], trials=ENOUGH, **options)
    roots = {str(each.tried.root.symptom) for each in found.failures if each.tried.root}
    assert roots == (set() if careful else {"resumes twice"}), str(found)
    assert bool(found.failures) is not careful, str(found)
