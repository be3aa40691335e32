"""Sends runs to a collector while they are written: a process of its own reads their logs, so that a collector that is
slow or down costs the run nothing."""

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread

from chaoslab.record import runs
from chaoslab.record.follow import Follower
from chaoslab.surfaces.otel.collector import Collector
from chaoslab.surfaces.otel.export import Export

POLL_S = 0.25
PATIENCE_S = 30.0
"""The most seconds that a command waits at its end until its trials are sent."""


def followed(folders: Iterable[str], collector: Collector) -> int:
    """Sends the runs whose folders come, one a line, while they are written. It ends when no more come and all that was
    written is sent. Returns the number of trials."""
    come: SimpleQueue[str | None] = SimpleQueue()

    def read() -> None:
        for each in folders:
            come.put(each)
        come.put(None)

    Thread(target=read, daemon=True).start()
    under_way: dict[Follower, Export] = {}
    done: list[Export] = []
    more = True
    while True:
        try:
            while more:
                folder = come.get_nowait()
                if folder is None:
                    more = False
                elif folder.strip():
                    under_way[Follower(Path(folder.rstrip("\n")))] = Export(collector)
        except Empty:
            pass
        for follower, export in [*under_way.items()]:
            try:
                found = follower.new()
            except OSError as error:
                collector.tell(f"note: {error.filename or 'a log'} cannot be read: {error.strerror or error}")
                found, more_of_it = [], False
            else:
                export.take(found)
                more_of_it = bool(found) or (more and not export.finished)
            export.send(last=not more_of_it)
            if not more_of_it:
                follower.close()
                del under_way[follower]
                done.append(export)
        if not more and not under_way:
            return sum(export.trials for export in done)
        collector.clock.sleep(POLL_S)


@contextmanager
def sent_to(base: str, *, logs: Path | None) -> Iterator[None]:
    """A context in which each run that this process and its children begin is sent to a collector. `base`: its address;
    empty: none. `logs`: where a run that was begun elsewhere, as in a container, is found by its link `latest`."""
    if not base:
        yield
        return
    link = None if logs is None else logs / "latest"
    before = link.resolve() if link else None
    read_end, write_end = os.pipe()
    program = (sys.executable, *(("-m",) if {"", str(Path.cwd())} & {*sys.path} else ("-P", "-m")))
    sender = subprocess.Popen(
        (*program, "chaoslab", "otlp", "-", "--to", base),
        stdin=read_end, stdout=subprocess.DEVNULL, start_new_session=True,  # a Ctrl-C is for the run alone
    )  # fmt: skip
    os.close(read_end)
    told: list[Path] = []

    def tell(folder: Path) -> None:
        told.append(folder)
        os.write(write_end, f"{folder.absolute()}\n".encode())

    runs.announced.append(tell)
    try:
        yield
    finally:
        runs.announced.remove(tell)
        if link and not told and link.exists() and link.resolve() != before:
            tell(link.resolve())
        os.close(write_end)
        try:
            sender.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            sender.kill()
            sender.wait()
            print(f"note: the collector at {base} is too slow: the last trials were not sent", file=sys.stderr)
