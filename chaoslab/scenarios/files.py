"""Finds scenario files."""

import re
from collections.abc import Sequence
from pathlib import Path

PATTERNS = ("*.chaos.yaml", "*.chaos.yml", "*.chaos.json", "*.chaos.toml")


def is_python(given: str) -> bool:
    """True for FILE.py and module:name."""
    from chaoslab.scenarios.spec import DOTTED

    return given.endswith(".py") or re.fullmatch(DOTTED, given) is not None


def found(paths: Sequence[Path]) -> list[Path]:
    """The files that were named, and those in the folders that were named, each once; without names, those below the
    current folder. Raises LookupError: there is none."""
    files: list[Path] = []
    for path in paths or [Path()]:
        if not path.is_dir():
            files.append(path)
            continue
        inside = sorted(each for pattern in PATTERNS for each in path.rglob(pattern) if each.is_file())
        if not inside:
            where = "here" if path == Path() else f"in {path}"
            raise LookupError(f"no scenario is {where}: its file is called something{PATTERNS[0].removeprefix('*')}")
        files += inside
    return list(dict.fromkeys(files))
