"""Pins the lab's foreign images: writes their digests into images.env, beside the tags of docker-compose.yaml.

    .venv/bin/python containers/digests.py

The Docker engine asks each image's registry. An image that it cannot look up is told in one line and keeps its digest.
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
"""An image in docker-compose.yaml: the name of its setting, and the tag."""


def main() -> int:
    file = Path("containers/images.env")
    text = file.read_text(encoding="utf-8")
    try:
        engine = docker.from_env()
    except DockerException as error:
        print(f"no Docker engine answers: {error}", file=sys.stderr)
        return 2
    missing = 0
    for name, tag in dict(NAMED.findall(Path("docker-compose.yaml").read_text(encoding="utf-8"))).items():
        try:
            line = f"{name}={tag}@{engine.images.get_registry_data(tag).id}"
        except (DockerException, RequestException) as error:
            print(f"{tag} was not looked up: {getattr(error, 'explanation', None) or error}", file=sys.stderr)
            missing += 1
            continue
        print(line)
        text, known = re.subn(rf"^{name}=.*$", line, text, flags=re.MULTILINE)
        text += "" if known else f"{line}\n"
    file.write_text(text, encoding="utf-8")
    return int(missing > 0)


if __name__ == "__main__":
    sys.exit(main())
