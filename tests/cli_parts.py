"""A lab in a folder of its own, on ports of its own, run as a person runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from chaoslab.clock import system
from chaoslab.worlds.local import WorldError, free_ports

_bases = count(10000 + os.getpid() % 79 * 100, 100)  # tests that run side by side look in different places


def free_base() -> int:
    """A base whose ports are free and lie below those that systems hand out by themselves."""
    for base in _bases:
        try:
            return free_ports(base, system).base
        except WorldError:
            continue
    raise AssertionError("unreachable")


def environment() -> dict[str, str]:
    """This process's, without what would change the lab's settings."""
    from chaoslab.settings import Settings

    names = set(Settings().environment())
    return {key: value for key, value in os.environ.items() if key not in names}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "chaoslab", *arguments]


def chaoslab(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in that folder, to its end."""
    return subprocess.run(
        command(*arguments), cwd=folder, env=environment(), capture_output=True, text=True, timeout=120, check=False
    )


def prompts(folder: Path, asked: Sequence[object]) -> str:
    """A prompt file, as a setting."""
    path = folder / "mine.json"
    path.write_text(json.dumps(list(asked)))
    return f"PROMPTS={path}"
