"""Pins the lab's foreign images: writes their digests into .env, with the tags beside them.

    .venv/bin/python containers/digests.py

The Docker engine asks each image's registry. An image that it cannot look up is told in one line and keeps its value.
The exit code is 0 if every image was found, 1 if one was not, 2 if no engine answers.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import docker
from docker.errors import DockerException
from requests.exceptions import RequestException

NAMED = re.compile(r"\$\{(\w+_IMAGE):-([^}]+)\}")
"""An image in docker-compose.yaml: the name of its setting, and the default."""
GIVEN = re.compile(r"\s*(?:export\s+)?(\w+_IMAGE)\s*=\s*[\"']?([^\s\"'@]*)")
"""One in .env: its name and the tag."""


def main() -> int:
    env = Path(".env")
    lines = env.read_text(encoding="utf-8").splitlines() if env.exists() else []
    images = dict(NAMED.findall(Path("docker-compose.yaml").read_text(encoding="utf-8")))
    given = {found[1]: (n, found[2]) for n, line in enumerate(lines) if (found := GIVEN.match(line))}
    try:
        engine = docker.from_env()
    except DockerException as error:
        print(f"no Docker engine answers: {error}", file=sys.stderr)
        return 2
    missing = 0
    for name, default in images.items():
        place, tag = given.get(name, (len(lines), ""))
        tag = tag or default.partition("@")[0]
        try:
            line = f"{name}={tag}@{engine.images.get_registry_data(tag).id}"
        except (DockerException, RequestException) as error:
            print(f"{tag} was not looked up: {getattr(error, 'explanation', None) or error}", file=sys.stderr)
            missing += 1
            continue
        print(line)
        lines[place : place + 1] = [line]
    if missing < len(images):
        env.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return int(missing > 0)


if __name__ == "__main__":
    sys.exit(main())
