"""Checks what a release needs: one version, its entry in the change log, a clean tree, and a wheel that works.

Usage: python .ci/release.py [--dirty]
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def version() -> str:
    """The version in pyproject.toml, which the package must name too."""
    stated: str = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    found = re.search(r'^__version__ = "(.*)"$', (ROOT / "chaoslab/__init__.py").read_text(), re.MULTILINE)
    named = found[1] if found else "nothing"
    if named != stated:
        sys.exit(f"pyproject.toml says {stated}, chaoslab/__init__.py says {named}: make them equal")
    return stated


def changes(stated: str) -> None:
    """The change log begins with this version, and a tag of it does not exist yet."""
    found = re.search(r"^## +(.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    newest = found[1] if found else "nothing"
    if not re.match(rf"\[?{re.escape(stated)}\b", newest):
        sys.exit(f'CHANGELOG.md begins with "{newest}": begin it with "## {stated}" and the date')
    if _said("git", "tag", "--list", f"v{stated}"):
        sys.exit(f"v{stated} is released: raise the version in pyproject.toml and chaoslab/__init__.py")


def clean() -> None:
    if changed := _said("git", "status", "--porcelain"):
        sys.exit(f"the tree has changes that no commit holds:\n{changed}")


def wheel(stated: str, folder: Path) -> Path:
    """Builds the wheel, which holds one package with its parts and their data, and nothing of the tests."""
    _done(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT))
    (built,) = folder.glob(f"chaoslab-{stated}-*.whl")
    with zipfile.ZipFile(built) as archive:
        names = archive.namelist()
    tops = {name.partition("/")[0] for name in names} - {f"chaoslab-{stated}.dist-info"}
    if tops != {"chaoslab"}:
        sys.exit(f"{built.name} holds {', '.join(sorted(tops))}: only chaoslab belongs there")
    tracked = _said("git", "ls-files", "chaoslab", "agent", "flask_tools", "proxy_manager").splitlines()
    wanted = {name if name.startswith("chaoslab/") else f"chaoslab/{name}" for name in tracked}
    if missing := sorted(wanted - set(names)):
        sys.exit(f"{built.name} lacks {', '.join(missing[:8])}: see setup.py, and [tool.setuptools] in pyproject.toml")
    return built


def _said(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def _done(*command: str, cwd: Path = ROOT) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dirty", action="store_true", help="also with changes that are not committed")
    options = parser.parse_args()
    stated = version()
    changes(stated)
    if not options.dirty:
        clean()
    with tempfile.TemporaryDirectory() as made:
        built = wheel(stated, Path(made))
        print(f"{built.name}: contents as tracked; trying it in an empty environment")
        subprocess.run([sys.executable, str(ROOT / ".ci/first_hour.py"), str(built)], check=True)
    print(f"{stated} can be released: tag it v{stated}, and push the tag")


if __name__ == "__main__":
    main()
