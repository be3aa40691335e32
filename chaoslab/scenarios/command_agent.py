"""A command as a scenario's agent: its output is the answer, and its requests go through the gateway."""

import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from chaoslab.config.settings import inherited

ANSWER_MAX = 1024 * 1024
"""The most bytes of a command's output that are its answer."""
PROMPT = "{prompt}"
"""Stands for the prompt in a word of the command."""
SAID_MAX = 300
"""The most characters of a failed command's last words that its error tells."""


def check_command(command: Sequence[str]) -> None:
    """Checks that a command's program is there. Raises LookupError: it is not."""
    if shutil.which(command[0]) is None:
        raise LookupError(f"the command {command[0]!r} is not found: give its path, or see that PATH holds it")


def find_files(command: Sequence[str], folder: Path) -> list[str]:
    """The command's words, in which the files of this folder have their whole paths, since it runs elsewhere."""
    return [str((folder / word).resolve()) if (folder / word).is_file() else word for word in command]


class CommandAgent:
    """Runs the command once for each trial. The prompt stands in place of `{prompt}` among its words, and comes at its
    standard input too."""

    reset = ""
    """A shell's command that is run before each trial, without the gateway, so that services begin anew."""

    def __init__(
        self, command: Sequence[str], *, folder: Path | None, deadline_s: float, in_copy: bool = False
    ) -> None:
        """Checks that the program is there. `in_copy`: it runs in the trial's copy of a folder, which is the current
        directory then. Raises LookupError: it is not."""
        check_command(command)
        self._in_copy = in_copy
        command = find_files(command, folder or Path()) if in_copy else command
        self._environment = inherited()
        self._words, self._folder, self._deadline_s = tuple(command), folder, deadline_s

    def __call__(self, prompt: str) -> str:
        """The command's output. Raises RuntimeError: it ended with an exit code other than 0. TimeoutError: it did not
        end in time."""
        if self.reset:
            subprocess.run(
                self.reset, shell=True, cwd=self._folder, env=self._environment, check=True, stdout=subprocess.DEVNULL
            )
        command = [word.replace(PROMPT, prompt) for word in self._words]
        with subprocess.Popen(
            command, cwd=None if self._in_copy else self._folder, env=inherited(), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        ) as process:  # fmt: skip
            try:
                out, err = process.communicate(prompt.encode(), timeout=self._deadline_s)
            except subprocess.TimeoutExpired:
                raise TimeoutError(f"the command did not end within {self._deadline_s:g} s") from None
            finally:
                with suppress(ProcessLookupError):  # whatever it has left behind
                    os.killpg(process.pid, signal.SIGKILL)
        if process.returncode:
            last_words = " ".join(err.decode("utf-8", "replace").split())[-SAID_MAX:]
            ending = f"exit code {process.returncode}" if process.returncode > 0 else f"signal {-process.returncode}"
            raise RuntimeError(f"the command ended with {ending}{f': {last_words}' if last_words else ''}")
        return out[:ANSWER_MAX].decode("utf-8", "replace").strip()
