"""Finds scenario files."""

import re
from collections.abc import Sequence
from pathlib import Path

PATTERNS = ("*.chaos.yaml", "*.chaos.yml", "*.chaos.json", "*.chaos.toml")


def is_python_source(name: str) -> bool:
    """True for FILE.py and module:name."""
    from chaoslab.scenarios.spec import DOTTED

    return name.endswith(".py") or re.fullmatch(DOTTED, name) is not None


def find_scenario_files(paths: Sequence[Path]) -> list[Path]:
    """The files that were named, and those in the folders that were named, each once; without names, those below the
    current folder. Raises LookupError: there is none."""
    files: list[Path] = []
    for path in paths or [Path()]:
        if not path.is_dir():
            files.append(path)
            continue
        inside = sorted(file for pattern in PATTERNS for file in path.rglob(pattern) if file.is_file())
        if not inside:
            location = "here" if path == Path() else f"in {path}"
            raise LookupError(f"no scenario is {location}: its file is called something{PATTERNS[0].removeprefix('*')}")
        files += inside
    return list(dict.fromkeys(files))
