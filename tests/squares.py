"""Work for processes, which are spawned sooner without pytest."""

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.waiting import HUNG_S, eventually


class Strange(Exception):
    """Cannot be made from what it was made with, as many an SDK's errors."""

    def __init__(self, *, status: int) -> None:
        super().__init__(f"status {status}")


@dataclass(frozen=True)
class Squares:
    """A unit is a number.

    `folder`: where each process leaves its id, and each unit a mark for every time that it was begun.
    """

    folder: Path
    deadly: tuple[int, ...] = ()
    """Numbers whose processes end at once, always."""
    unlucky: tuple[int, ...] = ()
    """Numbers whose processes end the first time."""
    waits: tuple[int, ...] = ()
    """Numbers that wait until they are let go by a file."""
    faulty: tuple[int, ...] = ()
    error: type[BaseException] = ZeroDivisionError
    strange: bool = False
    shut: bool = False

    def get_work_item_name(self, number: int) -> str:
        return str(number)

    @contextlib.contextmanager
    def open_runner(self) -> Iterator[Callable[[int], int]]:
        if self.shut:
            raise LookupError("closed today")
        (self.folder / f"process.{os.getpid()}").touch()
        yield self.square

    def square(self, number: int) -> int:
        with (self.folder / f"unit.{number}").open("a") as file:
            file.write("x")
        if number in self.deadly or (number in self.unlucky and self.begun(number) == 1):
            os._exit(9)
        if number in self.faulty:
            raise Strange(status=number) if self.strange else self.error(number)
        if number in self.waits:
            (self.folder / f"waiting.{os.getpid()}").touch()
            eventually(lambda: (self.folder / "go").exists(), within_s=HUNG_S)
        return number * number

    def begun(self, number: int) -> int:
        file = self.folder / f"unit.{number}"
        return len(file.read_text()) if file.exists() else 0

    def processes(self, mark: str = "process") -> list[int]:
        return [int(path.suffix[1:]) for path in self.folder.glob(f"{mark}.*")]
