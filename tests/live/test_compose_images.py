"""Each image holds as little as its part needs, in layers that are shared."""

from __future__ import annotations

import runpy
import subprocess
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import takewhile
from pathlib import Path
from threading import Thread

import pytest

from chaoslab.config.topology import SERVICES
from tests.live.compose_parts import ROOT, Stack, docker_missing

PARTS = [*SERVICES, "model", "proxy_manager", "agent", "settings"]


def inside(stack: Stack, service: str, code: str) -> str:
    """The output of a Python program in a service's image."""
    image = f"{stack.project}-{service}"
    command = ["docker", "run", "--rm", "--network", "none", "--entrypoint", "python", image, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize(
    ("service", "holds", "lacks"),
    [
        ("weather", ["flask", "waitress"], ["langchain", "pandas", "matplotlib", "numpy", "docker", "pytest"]),
        ("proxy_manager", ["toxiproxy"], ["flask", "langchain", "pandas", "matplotlib", "pytest"]),
        ("agent", ["langchain", "langchain_groq", "flask", "matplotlib", "pandas"], ["pytest"]),
    ],
)
def test_an_image_holds_what_its_part_needs_and_no_more(
    built: Stack, service: str, holds: list[str], lacks: list[str]
) -> None:
    code = f"import importlib.util as u; print([n for n in {holds + lacks} if u.find_spec(n)])"
    assert inside(built, service, code) == str(holds)


def test_no_image_has_a_compiler_or_tests(built: Stack) -> None:
    code = (
        "import pathlib, shutil; print([shutil.which(n) for n in ('gcc', 'cc', 'make')],"
        " [str(p) for root in ('/lab', '/usr/local/lib') for p in pathlib.Path(root).rglob('tests')])"
    )
    assert {inside(built, part, code) for part in ("weather", "agent")} == {"[None, None, None] []"}


def test_no_part_compiles_anything_when_it_starts(built: Stack) -> None:
    """Each file's compiled one holds its date. A part cannot write where it lies."""
    code = (
        "import sysconfig; from importlib.util import cache_from_source as kept; from pathlib import Path;"
        " roots = ('/lab/chaoslab', sysconfig.get_path('purelib') + '/flask');"
        " found = [p for root in roots for p in Path(root).rglob('*.py')];"
        " dated = lambda p: int(p.stat().st_mtime).to_bytes(4, 'little') == Path(kept(p)).read_bytes()[8:12];"
        " print(len(found) > 500, all(map(dated, found)))"
    )
    assert inside(built, "agent", code) == "True True"


def test_images_share_the_layers_of_their_dependencies(built: Stack) -> None:
    layers = {part: built.docker.images.get(f"{built.project}-{part}").attrs["RootFS"]["Layers"] for part in PARTS}
    shared = [
        a for a, _ in takewhile(lambda pair: pair[0] == pair[1], zip(layers["agent"], layers["search"], strict=False))
    ]
    base = len(built.docker.images.get("python:3.13-slim").attrs["RootFS"]["Layers"])
    assert len(shared) >= base + 3  # the folder, pyproject.toml with its reader, and what all parts need
    assert all(layers[part][: len(shared)] == shared for part in PARTS)
    assert all(layers[part] == layers["search"] for part in (*SERVICES, "model"))


def test_no_secret_and_nothing_of_this_folder_gets_into_an_image(built: Stack) -> None:
    code = "import os; print(sorted(os.listdir('/lab')), os.path.exists('/lab/.env'))"
    expected = [
        ".env",  # a link to where only `settings` has the user's
        "as-owner",
        "chaoslab",
        "charts",
        "data",
        "healthy",
        "install.py",
        "lock.txt",
        "logs",
        "pyproject.toml",
        "state",
    ]
    assert inside(built, "agent", code) == f"{expected} False"


def test_a_change_of_the_code_runs_without_a_build_and_a_build_does_not_install_anything_again(built: Stack) -> None:
    def runs_from() -> str:
        look = ("run", "--rm", "-T", "--no-deps", "--entrypoint", "/lab/as-owner printenv PYTHONPATH", "calculator")
        return built.compose(*look).stdout.strip()

    assert runs_from() == "/lab"
    before = built.docker.images.get(f"{built.project}-calculator").attrs["RootFS"]["Layers"]
    changed = built.folder / "flask_tools" / "calculator.py"
    text = changed.read_text()
    changed.write_text(text + "\n# another line\n")
    try:
        assert runs_from() == "/tmp/src"
        assert built.compose("build", "--quiet", "calculator").returncode == 0
        after = built.docker.images.get(f"{built.project}-calculator").attrs["RootFS"]["Layers"]
    finally:
        changed.write_text(text)
        assert built.compose("build", "--quiet", "calculator").returncode == 0
    assert after != before
    assert after[:-2] == before[:-2]
    assert built.docker.images.get(f"{built.project}-calculator").attrs["RootFS"]["Layers"] == before


def test_the_recipe_names_public_images_only() -> None:
    import yaml

    services = yaml.safe_load((ROOT / "docker-compose.yaml").read_text())["services"]
    named = {service["image"] for service in services.values() if "image" in service}
    assert named == {
        "${TOXIPROXY_IMAGE:-ghcr.io/shopify/toxiproxy:2.12.0}",
        "${COMPOSE_PROJECT_NAME}-agent",
        "${PROMETHEUS_IMAGE:-prom/prometheus:v3.5.0}",
        "${GRAFANA_IMAGE:-grafana/grafana:12.1.1}",
    }
    assert {name for name, service in services.items() if "build" not in service} == {
        "toxiproxy",
        "prometheus",
        "grafana",
    }
    assert "ARG PYTHON_IMAGE=python:3.13-slim\nFROM $PYTHON_IMAGE AS python\n" in (ROOT / "Dockerfile").read_text()


class Registry(BaseHTTPRequestHandler):
    """A registry that has one image."""

    DIGEST = f"sha256:{'5e' * 32}"

    def do_HEAD(self) -> None:
        has = self.path in ("/v2/", "/v2/python/manifests/3.13", f"/v2/python/manifests/{self.DIGEST}")
        self.send_response(200 if has else 404)
        self.send_header("Docker-Content-Digest", self.DIGEST)
        self.send_header("Content-Type", "application/vnd.oci.image.index.v1+json")
        self.send_header("Content-Length", "55")
        self.end_headers()
        if has and self.command == "GET":
            self.wfile.write(b'{"schemaVersion": 2, "manifests": []}'.ljust(55))

    do_GET = do_HEAD

    def log_message(self, *_: object) -> None:
        pass


def test_foreign_images_get_their_digests_beside_their_tags(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main = runpy.run_path(str(ROOT / "containers" / "digests.py"))["main"]
    pinned = tmp_path / "containers" / "images.env"
    pinned.parent.mkdir()
    pinned.write_text("# mine\nPYTHON_IMAGE=x:1@sha256:old\nTOXIPROXY_IMAGE=y:1@sha256:old\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
    assert main() == 2
    assert capsys.readouterr().err.startswith("no Docker engine answers: ")
    monkeypatch.delenv("DOCKER_HOST")
    if missing := docker_missing():
        pytest.skip(f"needs Docker: {missing}")
    with ThreadingHTTPServer(("127.0.0.1", 0), Registry) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        at = f"127.0.0.1:{server.server_address[1]}"
        (tmp_path / "docker-compose.yaml").write_text(
            f"${{PYTHON_IMAGE:-{at}/python:3.13}} ${{TOXIPROXY_IMAGE:-{at}/no:1}} ${{GRAFANA_IMAGE:-{at}/python:3.13}}"
        )
        code = main()
        server.shutdown()
    told, image = capsys.readouterr(), f"{at}/python:3.13@{Registry.DIGEST}"
    assert (code, told.out) == (1, f"PYTHON_IMAGE={image}\nGRAFANA_IMAGE={image}\n")
    assert told.err.startswith(f"{at}/no:1 was not looked up: ")
    assert told.err.count("\n") == 1
    assert (
        pinned.read_text() == f"# mine\nPYTHON_IMAGE={image}\nTOXIPROXY_IMAGE=y:1@sha256:old\nGRAFANA_IMAGE={image}\n"
    )
