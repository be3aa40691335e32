"""The fakes of the agent's own machine, in place for a run, and active in a trial with a folder."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

from chaoslab.seams.functions.seam import FunctionSeam
from chaoslab.seams.machine._commands import CommandCalls
from chaoslab.seams.machine._files import FileCalls


class MachineSeam:
    """The files and the commands of a trial, whose calls are exchanges of the seam of functions."""

    def __init__(self, seam: FunctionSeam) -> None:
        self._files, self._commands = FileCalls(seam), CommandCalls(seam)
        self.pairs: list[tuple[Any, Any]] = []
        """Real functions, each with its fake, for whoever holds them by another name."""

    @contextmanager
    def install_fakes(self) -> Iterator[None]:
        """A context with the fakes in place."""
        with ExitStack() as stack:
            for holder, name, stand_in in [*self._files.list_patches(), *self._commands.list_patches()]:
                real = vars(holder)[name]
                stack.callback(setattr, holder, name, real)
                setattr(holder, name, stand_in)
                if not isinstance(holder, type):
                    self.pairs.append((real, stand_in))
            yield

    @contextmanager
    def use_folder(
        self, folder: Path, source: Path, outside: Callable[[], AbstractContextManager[None]]
    ) -> Iterator[None]:
        """A context in which a trial works in this folder, a copy of `source`. `outside`: a context in which this
        thread is in no virtual world."""
        files, commands = self._files, self._commands
        files.folder, files.source, commands.outside, commands.active = str(folder), str(source), outside, True
        try:
            yield
        finally:
            files.folder, commands.active = "", False
            commands.end_running_processes()
