"""Containers for the tests of this folder: built once, taken down at the end.

Each worker of the test run has a copy of the lab and containers of its own, of the same images by names of its own.
Where there is no engine, each test says so and is skipped.
"""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
from collections.abc import Iterator

import pytest

from tests.live.compose_parts import OWNER, ROOT, WITHIN_S, Stack, docker_missing

if os.environ.get("SSL_CERT_FILE") == str(ROOT / "tests" / "nobody.pem"):
    del os.environ["SSL_CERT_FILE"]  # images come from a registry

FIRST_PORT = 32100
"""Above the slots of the labs on loopback, below the ports that systems hand out by themselves."""


def _free_ports() -> Iterator[int]:
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    for port in range(FIRST_PORT + 100 * number, FIRST_PORT + 100 * (number + 1)):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if probe.connect_ex(("127.0.0.1", port)):
                yield port


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The lab's images, and a copy of the repository to run them from."""
    if missing := docker_missing():
        pytest.skip(f"needs Docker with Compose: {missing}")
    import docker

    folder = tmp_path_factory.mktemp("containers") / "lab"
    folder.mkdir()
    for parent in (folder.parent, *folder.parent.parents):  # pytest's own folders are closed to others
        if parent.stat().st_uid == os.getuid() and parent.is_relative_to(tmp_path_factory.getbasetemp().parent):
            parent.chmod(0o755)
    files = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True
    ).stdout
    packed = subprocess.run(
        ["tar", "-cf", "-", "-T", "-"], cwd=ROOT, input=files, capture_output=True, check=True
    ).stdout
    subprocess.run(["tar", "-xf", "-"], cwd=folder, input=packed, check=True)
    if os.getuid() == 0:
        subprocess.run(["chown", "-R", f"{OWNER}:{OWNER}", folder], check=True)
    client = docker.from_env(timeout=int(WITHIN_S))
    ports = _free_ports()
    stack = Stack(folder, f"chaoslabtest{os.getpid()}", client, next(ports), next(ports))
    try:
        base = tmp_path_factory.getbasetemp()  # a worker's lies in that of its run; that of a run alone, beside others'
        with open((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "built", "a+") as first:
            fcntl.flock(first, fcntl.LOCK_EX)
            first.seek(0)
            if project := first.read():  # another worker has built them, for a project of that name
                for image in client.images.list(filters={"reference": f"{project}-*"}):
                    for name in image.tags:
                        image.tag(name.replace(project, stack.project, 1))
            else:
                # Without BuildKit, Compose builds all images at the same time and each makes the layers that it finds
                # missing: one goes first, so that the others find those that they share.
                build = stack.compose("build", "--quiet", "search")
                if build.returncode == 0:
                    build = stack.compose("build", "--quiet")
                assert build.returncode == 0, build.stderr[-3000:]
                first.write(stack.project)
        yield stack
    finally:
        stack.compose("down", "--volumes", "--rmi", "local", "--timeout", "5")
        client.close()


@pytest.fixture
def fresh(built: Stack) -> Iterator[Stack]:
    """The lab with nothing running before. What a test leaves running serves the next one."""
    if built.up:
        built.end()
    built.up = True
    yield built
    built.end_commands()


@pytest.fixture
def stack(built: Stack) -> Iterator[Stack]:
    """The lab with all its services up and no agent at work, newly begun or as the test before left it."""
    built.up = True
    built.stand()
    yield built
    built.end_commands()
