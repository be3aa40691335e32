"""Installs what one part of the lab needs: `python install.py [EXTRA ...]`; without an extra, what all need.

pyproject.toml names it, lock.txt beside this file has the exact versions, of what it needs itself too. So dependencies
are named in one place only, and have image layers of their own that a change of the code leaves alone. The test suites
that some packages bring along are left out.

`python containers/install.py --lock` writes lock.txt anew and installs nothing. The Python must be the image's.
"""

from __future__ import annotations

import compileall
import json
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

LOCK = Path(__file__).with_name("lock.txt")
LOCKED = ("tools", "online", "agent", "terminal", "charts", "virtual", "ui")
"""The extras of all parts."""
HEAD = "# The versions in the lab's images, for Python {}. Made by: python containers/install.py --lock\n"


def main(asked: list[str]) -> None:
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    locking = asked == ["--lock"]
    wanted = [d for extra in (LOCKED if locking else asked) for d in project["optional-dependencies"][extra]]
    if locking:
        found = installed("--dry-run", "--ignore-installed", *project["dependencies"], *wanted)
        head = HEAD.format(".".join(map(str, sys.version_info[:2])))
        LOCK.write_text(head + "".join(f"{line}\n" for line in found), encoding="utf-8")
        return
    exact = (
        "--constraint",
        str(LOCK),
        "--ignore-installed",
    )  # pip cannot take away what a distribution's own Python has
    found = installed("--no-cache-dir", "--no-compile", *exact, *(wanted or project["dependencies"]))
    if unlocked := set(found).difference(LOCK.read_text(encoding="utf-8").splitlines()):
        raise SystemExit(f"{LOCK.name} lacks {', '.join(sorted(unlocked))}: write it anew, see {Path(__file__).name}")
    site = Path(sysconfig.get_path("purelib"))
    for folder in list(site.glob("*/**/tests")):
        shutil.rmtree(folder, ignore_errors=True)
    compileall.compile_dir(site, quiet=2)  # a part cannot write there, and would compile at each start


def installed(*arguments: str) -> list[str]:
    """The packages that pip installs, each as "name==version"."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--report", "-", *arguments]
    report = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    each = (package["metadata"] for package in report["install"])
    return sorted(f"{re.sub(r'[-_.]+', '-', package['name'].lower())}=={package['version']}" for package in each)


if __name__ == "__main__":
    main(sys.argv[1:])
