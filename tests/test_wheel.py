"""The wheel installs one name, and a lab that works from any folder, whatever that folder holds."""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from chaoslab.reports.charts import list_charts
from tests.cli_parts import environment, execute, free_base, prompts

ROOT = Path(__file__).parent.parent


UV = "uv"
"""It builds and installs in a part of pip's time. As in the Makefile, pip does what it cannot, or where it is not."""


def first_of(*commands: list[str], env: dict[str, str] | None = None) -> None:
    """Runs the first of the commands that works here."""
    *others, last = [command for command in commands if shutil.which(command[0])]
    if not any(subprocess.run(each, env=env, check=False).returncode == 0 for each in others):
        subprocess.run(last, env=env, check=True)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"  # building leaves things behind
    for name in ("agent", "flask_tools", "proxy_manager", "chaoslab"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    believing = {name: value for name, value in os.environ.items() if name != "SSL_CERT_FILE"}
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(source)]
    fast = [UV, "build", "--quiet", "--wheel", "--python", sys.executable, "--out-dir", str(folder), str(source)]
    first_of(fast, pip, env=believing)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` of an environment that holds the wheel, and of others only what the tests' own environment has."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    (site,) = (folder / "lib").glob("python*/site-packages")
    (site / "others.pth").write_text(
        sysconfig.get_path("purelib") + "\n"
    )  # a folder named so brings no .pth of its own
    target = ["install", "--quiet", "--target", str(site), "--no-deps", "--no-index", str(wheel)]
    first_of([UV, "pip", *target], [sys.executable, "-m", "pip", *target, "--no-compile"])
    where = execute(
        [str(folder / "bin" / "python"), "-I", "-c", "import chaoslab; print(chaoslab.__file__)"], check=True
    )
    assert where.stdout.startswith(str(folder))
    return folder / "bin"


def test_the_wheel_claims_one_name_and_holds_the_parts_with_their_data(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"chaoslab"}
    for part, file in (("agent", "prompts.json"), ("agent", "config.json"), ("flask_tools", "data/movies.json")):
        assert f"chaoslab/{part}/{file}" in names
    assert "chaoslab/proxy_manager/manager.py" in names


@pytest.mark.parametrize(
    "typed",
    [
        ("python", "-m", "chaoslab", "run", "--world", "virtual"),  # it compiles most for the other
        ("chaoslab", "lab", "BASE_PORT={base}", "TOXIC_PROB=0", "ERROR_PROB=0"),
    ],
    ids=" ".join,
)
def test_it_works_in_a_folder_that_has_files_of_the_same_names(
    typed: tuple[str, ...], installed: Path, tmp_path: Path
) -> None:
    for file in ("agent.py", "agent/__init__.py", "logs.py", "flask_tools.py", "proxy_manager.py", "charts.py"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text("raise SystemExit('this is mine')\n")
    program, *arguments = [part.format(base=free_base()) for part in typed]
    if program == "chaoslab":  # what the console script of an installation does
        program, arguments = (
            "python",
            ["-I", "-c", "from chaoslab.cli import main; raise SystemExit(main())", *arguments],
        )
    words = [str(installed / program), *arguments, prompts(tmp_path, ["What is 6 times 7?"])]
    done = execute(words, cwd=tmp_path, env=environment())
    troubles = [said for said in done.stderr.splitlines() if not said.startswith("trial ")]  # it was slow, and said so
    assert (done.returncode, troubles) == (0, [])
    assert "42" in (tmp_path / "logs" / "latest" / "info.log").read_text()
    pictures = {path.stem for path in (tmp_path / "charts").glob("*.png")}
    assert pictures == {"network_latency", "success_rate", "throughput", "tool_latency"}, "those that need no fault"
    left_out = sum(line.count(".png") for line in done.stdout.splitlines() if line.lstrip().startswith("no "))
    assert len(pictures) + left_out == len(list_charts()), "drawn, or why not"
