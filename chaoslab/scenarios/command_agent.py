"""A command as a scenario's agent: its output is the answer, and its requests go through the gateway."""

import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock

from chaoslab.base.files import load_bytes
from chaoslab.base.identity import hash_value
from chaoslab.config.settings import copy_environment
from chaoslab.execution.agents.functions import ProcessAgent

ANSWER_MAX = 1024 * 1024
"""The most bytes of a command's output that are its answer."""
SOURCE_MAX = 1024 * 1024
"""The most bytes of a file among the command's words that its digest holds."""
PROMPT = "{prompt}"
"""Stands for the prompt in a word of the command."""
SAID_MAX = 300
"""The most characters of a failed command's last words that its error tells."""
_starting = Lock()
"""Held until a process that starts is among those that run, since its first request may kill it."""


def check_command_exists(command: Sequence[str]) -> None:
    """Checks that a command's program is there. Raises LookupError: it is not."""
    if shutil.which(command[0]) is None:
        raise LookupError(f"the command {command[0]!r} is not found: give its path, or see that PATH holds it")


def resolve_command_files(command: Sequence[str], folder: Path) -> list[str]:
    """The command's words, in which the files of this folder have their whole paths, since it runs elsewhere."""
    return [str((folder / word).resolve()) if (folder / word).is_file() else word for word in command]


class CommandAgent(ProcessAgent):
    """Runs the command whenever it is asked. The prompt stands in place of `{prompt}` among its words, and comes at its
    standard input too."""

    def __init__(
        self, command: Sequence[str], *, folder: Path | None, deadline_s: float, in_copy: bool = False, reset: str = ""
    ) -> None:
        """Checks that the program is there. `in_copy`: it runs in the trial's copy of a folder, which is the current
        directory then. `reset`: a shell's command that is run before each trial, without the gateway, so that services
        and what the agent keeps begin anew. Raises LookupError: it is not there."""
        check_command_exists(command)
        self._in_copy, self._reset = in_copy, reset
        self._groups = set[int]()
        """Those of the processes that run."""
        paths = resolve_command_files(command, folder or Path())
        # Of a script, and not of the interpreter that runs it.
        sources = [file for file in map(Path, paths) if file.is_file() and file.stat().st_size <= SOURCE_MAX]
        programs = [load_bytes(file).hex() for file in sources]
        self.digest = hash_value([*command, reset, *programs])
        command = paths if in_copy else command
        self._environment = copy_environment()
        self._words, self._folder, self._deadline_s = tuple(command), folder, deadline_s

    def __call__(self, prompt: str) -> str:
        """The command's output. Raises RuntimeError: it ended with an exit code other than 0. TimeoutError: it did not
        end in time."""
        command = [word.replace(PROMPT, prompt) for word in self._words]
        with _starting:
            process = subprocess.Popen(
                command,
                cwd=None if self._in_copy else self._folder,
                env=copy_environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            self._groups.add(process.pid)
        with process:
            try:
                out, err = process.communicate(prompt.encode(), timeout=self._deadline_s)
            except subprocess.TimeoutExpired:
                raise TimeoutError(f"the command did not end within {self._deadline_s:g} s") from None
            finally:
                self._groups.discard(process.pid)
                _kill_group(process.pid)  # whatever it has left behind
        if process.returncode:
            last_words = " ".join(err.decode("utf-8", "replace").split())[-SAID_MAX:]
            ending = f"exit code {process.returncode}" if process.returncode > 0 else f"signal {-process.returncode}"
            raise RuntimeError(f"the command ended with {ending}{f': {last_words}' if last_words else ''}")
        return out[:ANSWER_MAX].decode("utf-8", "replace").strip()

    def begin_trial(self) -> None:
        """Begins a trial. Raises RuntimeError: the command to reset by failed."""
        if not self._reset:
            return
        ended = subprocess.run(
            self._reset, shell=True, cwd=self._folder, env=self._environment, stdout=subprocess.DEVNULL, check=False
        )
        if ended.returncode:
            raise RuntimeError(f"the reset, {self._reset:.80}, ended with exit code {ended.returncode}")

    def kill(self) -> None:
        with _starting:
            groups = [*self._groups]
        for group in groups:
            _kill_group(group)


def _kill_group(group: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
