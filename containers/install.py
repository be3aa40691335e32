"""Installs what one part of the lab needs, as pyproject.toml says it: `python install.py [EXTRA ...]`; without an
extra, what all need.

So dependencies are named in one place only, and have image layers of their own that a change of the code leaves alone.
The test suites that some packages bring along are left out.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path


def main(extras: list[str]) -> None:
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [d for extra in extras for d in project["optional-dependencies"][extra]] or project["dependencies"]
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-cache-dir", *wanted], check=True)
    for folder in list(Path(sysconfig.get_path("purelib")).glob("*/**/tests")):
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1:])
