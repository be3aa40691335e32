"""Prints what one part of the lab needs, from pyproject.toml: `python dependencies.py [EXTRA ...]`, for pip to read.

So that dependencies are named in one place only, and have an image layer of their own that a change of the code leaves alone.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path


def main(extras: list[str]) -> None:
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [d for extra in extras for d in project["optional-dependencies"][extra]] or project["dependencies"]
    print("\n".join(wanted))


if __name__ == "__main__":
    main(sys.argv[1:])
