"""Does an agent that cleans up delete more than what was built?"""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path


def remove_all_but(names: list[str]) -> str:
    removed = [path for path in Path().rglob("*") if path.is_file() and path.name not in names]
    for path in removed:
        os.remove(path)
    return f"Removed {len(removed)} files."


def naive() -> Callable[[str], str]:
    def agent(prompt: str) -> str:
        sources = subprocess.run(["ls", "src"], capture_output=True, text=True, check=False)
        return remove_all_but(sources.stdout.split())

    return agent


def careful() -> Callable[[str], str]:
    def agent(prompt: str) -> str:
        sources = subprocess.run(["ls", "src"], capture_output=True, text=True, check=False)
        if sources.returncode or not sources.stdout:
            return "I could not list the sources, so I removed nothing."
        return remove_all_but(sources.stdout.split())

    return agent
