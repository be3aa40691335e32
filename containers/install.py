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
from importlib.metadata import distributions
from pathlib import Path

LOCK = Path(__file__).with_name("lock.txt")
LOCKED = ("tools", "agent", "charts", "ui")
"""The extras of all parts."""
UV = Path("/tmp/uv/bin/uv")
UNUSED = (
    r"fontTools/[b-ln-z]|future/(?!utils/|__init__)|numpy/f2py/|pygments/lexers/[a-z]|"
    r"langsmith/(evaluation|integrations|resources)/"
)
"""Files that no part loads, a fifth of all."""
HEAD = "# The versions in the lab's images, for Python {}. Made by: python containers/install.py --lock\n"


def main(asked: list[str]) -> None:
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    locking = asked == ["--lock"]
    wanted = [d for extra in (LOCKED if locking else asked) for d in project["optional-dependencies"][extra]]
    if locking:
        found = resolved(*project["dependencies"], *wanted)
        head = HEAD.format(".".join(map(str, sys.version_info[:2])))
        LOCK.write_text(head + "".join(f"{line}\n" for line in found), encoding="utf-8")
        return
    site = Path(sysconfig.get_path("purelib"))
    before = present(site)
    install("--constraint", str(LOCK), *(wanted or project["dependencies"]))
    if unlocked := present(site).difference(before, LOCK.read_text(encoding="utf-8").splitlines()):
        raise SystemExit(f"{LOCK.name} lacks {', '.join(sorted(unlocked))}: write it anew, see {Path(__file__).name}")
    for folder in list(site.glob("*/**/tests")):
        shutil.rmtree(folder, ignore_errors=True)
    # A part cannot write there, and would compile at each start.
    compileall.compile_dir(site, quiet=2, rx=re.compile(f"/({UNUSED})"))


def install(*arguments: str) -> None:
    """By uv where it is there. It has settings of its own for mirrors and certificates, so pip tries what it cannot."""
    with_uv = [UV, "pip", "install", "--quiet", "--no-cache", "--system", "--break-system-packages", *arguments]
    if UV.exists() and subprocess.run(with_uv, check=False).returncode == 0:
        return
    # pip cannot take away what a distribution's own Python has
    options = ("--quiet", "--no-cache-dir", "--no-compile", "--ignore-installed")
    subprocess.run([sys.executable, "-m", "pip", "install", *options, *arguments], check=True)


def present(site: Path) -> set[str]:
    """The packages in a folder, each as "name==version"."""
    return {named(found.name, found.version) for found in distributions(path=[str(site)])}


def resolved(*requirements: str) -> list[str]:
    """The packages that pip would install, each as "name==version"."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--report", "-"]
    report = json.loads(subprocess.run([*command, *requirements], check=True, stdout=subprocess.PIPE).stdout)
    each = (package["metadata"] for package in report["install"])
    return sorted(named(package["name"], package["version"]) for package in each)


def named(package: str, version: str) -> str:
    return f"{re.sub(r'[-_.]+', '-', package.lower())}=={version}"


if __name__ == "__main__":
    main(sys.argv[1:])
