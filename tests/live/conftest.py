"""Containers for the tests of this folder: built once, taken down at the end.

Where there is no engine, each test says so and is skipped.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from chaoslab.config.topology import Ports
from tests.cli_parts import free_base
from tests.live.compose_parts import OWNER, ROOT, Stack, docker_missing


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
    client = docker.from_env()
    ports = Ports(free_base())
    stack = Stack(folder, f"chaoslabtest{os.getpid()}", client, ports.manager, ports.toxiproxy)
    try:
        build = stack.compose("build", "--quiet")
        assert build.returncode == 0, build.stderr[-3000:]
        yield stack
    finally:
        stack.compose("down", "--volumes", "--rmi", "local", "--timeout", "5")
        client.close()


@pytest.fixture
def stack(built: Stack) -> Iterator[Stack]:
    """The lab with nothing running, before and after."""
    yield built
    built.end()
