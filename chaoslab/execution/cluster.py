"""Trials on any pool of processes: a `concurrent.futures.Executor` of the user's, or the workers of a Dask cluster.

Batches of about half a second go out, a few for each worker and never more, and results come back in the order of the
trials. In a worker the trials run in a child process, so that the worker's own threads are no part of a trial's world.
"""

from __future__ import annotations

import hashlib
import io
import logging
import os
import sys
import threading
import zipfile
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future, wait
from concurrent.futures import Executor as Pool
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from chaoslab.base import extras, files
from chaoslab.base.clock import system
from chaoslab.base.jsonable import describe_error
from chaoslab.execution.forked import ChildExecutor
from chaoslab.execution.spec import Work
from chaoslab.execution.workers import (
    ChunkResult,
    TellNews,
    WorkerLost,
    add_traceback_note,
    pack_work,
    unpack_work,
    use_executor_factory,
)
from chaoslab.record import provenance

S = TypeVar("S")
R = TypeVar("R")
BATCH_S = 0.5
"""The seconds that a batch should take: sending one costs a few milliseconds."""
BATCH_MAX = 2000
"""The most trials of a batch."""
AHEAD = 3
"""The batches given to each worker in advance, so that it never waits."""
AGAIN = 10
"""The times that a batch is given out again after the scheduler gave it up, as its workers were ended."""
ANSWERS_S = 5.0
"""The time for a scheduler to answer, in seconds."""
LOOK_S, GONE_S = 2.0, 120.0
"""The seconds between two looks for workers while a result is awaited, and those after which a cluster that has none is
given up: Dask restarts a worker that died, but not one that died again and again while it began."""
SENT_MAX = 20 << 20
"""The most bytes of an agent's folder that are sent to other machines."""
SILENT = logging.CRITICAL + 1
"""The level of Dask's own log: what matters of it is told in a line."""
QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.monitor-interval": "1s",
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
}
"""Dask's settings for a local cluster: nobody looks at what it measures of itself, which takes a twentieth of two
cores."""
ARCHIVE = "chaoslab_agent_"
LEFT_OUT = {"logs", "charts", "__pycache__", "node_modules"}


class NoCluster(ValueError):
    """A cluster cannot be used; the message is one line."""


@dataclass(frozen=True)
class PoolExecutor:
    """An executor on a pool with `width` workers. `paths`: tells, when work is given out, where it looks for modules
    first. `heard`: see `ChildExecutor`. `limit_s`: the most seconds of real time for a trial. `left`: the number of
    workers that there are."""

    pool: Pool
    width: int
    limit_s: float | None = None
    heard: TellNews = nullcontext
    paths: Callable[[], Sequence[str]] = tuple
    left: Callable[[], int] | None = None

    def map(self, work: Work[S, R], specs: Iterable[S]) -> Generator[R, None, None]:
        """See `Executor.map`. Specs are read as they are given out. Raises WorkerLost: the pool broke, or ended the
        workers of a batch again and again. NotPicklable: the work cannot be sent."""
        sent, coming, size = _PackedWork(pack_work(work), tuple(self.paths())), iter(specs), 1
        batch: Sequence[S]
        out: deque[tuple[Sequence[S], Future[tuple[list[ChunkResult[R]], float]], int]] = deque()
        has_more = True
        try:
            while has_more or out:
                while has_more and len(out) < self.width * AHEAD:
                    batch = list(islice(coming, size))
                    has_more = len(batch) == size
                    if batch:
                        out.append((batch, self._submit_batch(sent, batch), 0))
                if not out:
                    return
                batch, future, lost = out.popleft()
                try:
                    with self.heard():
                        chunk_results, took_s = self._wait_for_result(future, work, batch)
                except BrokenExecutor as error:
                    raise WorkerLost(
                        f"the pool broke in {_describe_batch(work, batch)}: {describe_error(error)}"
                    ) from error
                except Exception as error:
                    if type(error).__name__ != "KilledWorker":  # Dask's, which may not be installed
                        raise
                    if lost == AGAIN:
                        reason = f"the workers that did {_describe_batch(work, batch)} were ended, {AGAIN} times over"
                        raise WorkerLost(f"{reason}: {describe_error(error)}") from error
                    out.appendleft((batch, self._submit_batch(sent, batch), lost + 1))
                    continue
                for chunk_result in chunk_results:
                    yield from chunk_result.iterate_results()
                each_s = took_s / len(batch)
                size = max(1, min(BATCH_MAX, size * 4, int(BATCH_S / each_s) if each_s > 0 else BATCH_MAX))
        finally:
            for _, future, _ in out:
                future.cancel()

    def _wait_for_result(
        self, future: Future[tuple[list[ChunkResult[R]], float]], work: Work[S, R], batch: Sequence[S]
    ) -> tuple[list[ChunkResult[R]], float]:
        """The result of a batch, unless no worker is left to do it."""
        seen_s = system.monotonic()
        while self.left is not None and not wait([future], LOOK_S).done:
            if self.left():
                seen_s = system.monotonic()
            elif system.monotonic() - seen_s > GONE_S:
                raise WorkerLost(
                    f"all workers are gone since {GONE_S:g} s, with {_describe_batch(work, batch)} in hand"
                )
        return future.result()

    def _submit_batch(self, sent: _PackedWork, batch: Sequence[S]) -> Future[tuple[list[ChunkResult[R]], float]]:
        return self.pool.submit(_run_batch, sent, batch, self.limit_s)


def _describe_batch(work: Work[S, Any], batch: Sequence[S]) -> str:
    first, last = work.get_work_item_name(batch[0]), work.get_work_item_name(batch[-1])
    return first if first == last else f"{first} to {last}"


# In a worker.


@dataclass(frozen=True)
class _PackedWork:
    """Work as bytes, which are unpacked in the child that does it: so its modules are its own, whatever work of other
    folders was done here before. `paths`: where it looks for them first."""

    packed: bytes
    paths: tuple[str, ...]

    def get_work_item_name(self, spec: Any) -> str:
        """See `Work.get_work_item_name`."""
        with self._use_import_paths():
            return unpack_work(self.packed).get_work_item_name(spec)

    @contextmanager
    def open_runner(self) -> Iterator[Callable[[Any], Any]]:
        with self._use_import_paths(), unpack_work(self.packed).open_runner() as do:
            yield do

    @contextmanager
    def _use_import_paths(self) -> Iterator[None]:
        before = [*sys.path]
        sys.path[:0] = map(_resolve_import_path, self.paths)
        try:
            yield
        finally:
            sys.path[:] = before


class _ThreadState(threading.local):
    """The child of a worker's thread, which goes on with the next batch of the same work."""

    def __init__(self) -> None:
        self.children, self.sent = ChildExecutor(kept=True), _PackedWork(b"", ())


_thread_state = _ThreadState()


def _resolve_import_path(path: str) -> str:
    """The path in this worker; that of an archive which was sent is its name alone."""
    if os.sep in path or not path.startswith(ARCHIVE):
        return path
    from distributed import get_worker

    return os.path.join(get_worker().local_directory, path)


def _run_batch(sent: _PackedWork, batch: Sequence[Any], limit_s: float | None) -> tuple[list[ChunkResult[Any]], float]:
    """The results of a batch, and the seconds that they took."""
    began_s, chunk_results = system.monotonic(), list[ChunkResult[Any]]()
    state = _thread_state
    state.children.limit_s = limit_s
    if state.sent != sent:  # what came is equal, and another object each time
        state.sent = sent
    try:
        with closing(state.children.iterate_chunk_results(state.sent, batch)) as coming:
            for chunk_result in coming:
                chunk_results.append(chunk_result)
                if chunk_result.error is not None:
                    break
    except BaseException as error:  # noqa: BLE001 - it is raised again where the results are taken
        chunk_results.append(ChunkResult.build([], add_traceback_note(error)))
    return chunk_results, system.monotonic() - began_s


# Dask.


@contextmanager
def cluster(
    on: str | Pool, *, workers: int | None = None, folders: Sequence[Path] = (), tell: Callable[[str], object] = print
) -> Iterator[int]:
    """A context in which all that runs trials in several processes runs them there; it gives the number of workers.

    `on`: "local" for processes of Dask on this machine, a scheduler's address such as "tcp://10.0.0.5:8786", or a
    `concurrent.futures.Executor` of processes. `workers`: how many, where that cannot be asked. `folders`: those
    of the agents' modules, which are sent to workers on other machines. `tell` is called with a line if something of
    note happens.

    Raises:
        NoCluster: it does not answer, or its Python or chaoslab is another than this one.
    """
    if not isinstance(on, str):
        width = workers or getattr(on, "_max_workers", None) or os.cpu_count() or 1
        with use_executor_factory(lambda limit_s, heard: PoolExecutor(on, width, limit_s, heard)):
            yield width
        return
    extras.require_module("a cluster", "distributed", "cluster")
    with _open_client(on, workers or os.cpu_count() or 1) as client:
        width = sum(client.nthreads().values())
        if not width:
            raise NoCluster(f"the cluster at {on} has no workers: start one with `dask worker {on}`")
        _check_worker_versions(client, on)
        is_local = on == "local"
        places = (
            {}
            if is_local
            else {str(folder.resolve()): _send_folder_to_workers(client, folder, tell) for folder in folders}
        )
        ended: list[str] = []
        closing: list[bool] = []
        client.subscribe_topic("all", lambda event: None if closing else _report_lost_worker(event, ended, tell))
        pool = client.get_executor(pure=False, retries=0)

        def list_import_paths() -> Sequence[str]:  # those of the scenario that runs come first
            return (
                sys.path
                if is_local
                else [places[real] for path in sys.path if (real := os.path.realpath(path)) in places]
            )

        try:
            count_workers = lambda: len(client.nthreads())  # noqa: E731
            with use_executor_factory(
                lambda limit_s, heard: PoolExecutor(pool, width, limit_s, heard, list_import_paths, count_workers)
            ):
                yield width
        finally:
            closing.append(True)  # the next line only asks the scheduler, which tells of the end of all workers first
            client.unsubscribe_topic("all")


@contextmanager
def _open_client(on: str, workers: int) -> Iterator[Any]:
    import dask
    from distributed import Client, LocalCluster

    if on == "local":
        with ExitStack() as stack:
            stack.enter_context(dask.config.set(QUIET))
            local_cluster = LocalCluster(  # type: ignore[no-untyped-call]
                n_workers=workers,
                threads_per_worker=1,
                dashboard_address="127.0.0.1:0",
                host="127.0.0.1",
                silence_logs=SILENT,
            )
            stack.enter_context(local_cluster)
            yield stack.enter_context(Client(local_cluster, direct_to_workers=True))  # type: ignore[no-untyped-call]
        return
    try:
        client = Client(on, timeout=ANSWERS_S)  # type: ignore[no-untyped-call]
    except (OSError, ValueError, TimeoutError) as error:
        raise NoCluster(f"no cluster answers at {on} ({describe_error(error)}): say local, or a scheduler's address, "
                        "as in tcp://127.0.0.1:8786") from None  # fmt: skip
    with client:
        yield client


def _collect_shared_versions() -> dict[str, str]:
    """The versions that have to be alike on every worker."""
    return {name: value for name, value in provenance.collect_versions().items() if name not in provenance.OTHERS}


def _check_worker_versions(client: Any, on: str) -> None:
    own_versions = _collect_shared_versions()
    try:
        versions_by_worker = client.run(_collect_shared_versions)
    except Exception as error:  # noqa: BLE001 - a worker without chaoslab cannot even unpickle the question
        raise NoCluster(f"a worker of the cluster at {on} cannot be asked for its chaoslab ({describe_error(error)}): "
                        "install the same there") from None  # fmt: skip
    for worker, worker_versions in versions_by_worker.items():
        for name in sorted(own_versions):
            if (version := worker_versions.get(name, provenance.ABSENT)) != own_versions[name]:
                difference = (
                    f"another version of {name}"
                    if name in provenance.OWN
                    else f"{name} {version}, and here {own_versions[name]}"
                )
                raise NoCluster(f"worker {worker} has {difference}: install the same there")


def _send_folder_to_workers(client: Any, folder: Path, tell: Callable[[str], object]) -> str:
    """Sends the Python files of a folder to all workers, also those to come, and returns the archive's name. Dask is
    not to load them: it would load a module twice if another has imported it."""
    python_files = [
        path for path in sorted(folder.rglob("*.py")) if not LEFT_OUT & {*path.relative_to(folder).parts[:-1]}
    ]
    if (size := sum(path.stat().st_size for path in python_files)) > SENT_MAX:
        raise NoCluster(f"{folder} has {size >> 20} MiB of Python files: install the agent on the workers as a package")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in python_files:  # without its time, so that equal files are an equal archive
            archive.writestr(zipfile.ZipInfo(path.relative_to(folder).as_posix()), files.load_bytes(path))
    with TemporaryDirectory() as temporary_folder:
        name = f"{ARCHIVE}{hashlib.blake2b(buffer.getvalue(), digest_size=8).hexdigest()}.zip"
        (Path(temporary_folder) / name).write_bytes(buffer.getvalue())
        client.upload_file(str(Path(temporary_folder) / name), load=False)
    tell(f"sent {len(python_files)} Python files of {folder} to the workers")
    return name


def _report_lost_worker(event: Any, ended: list[str], tell: Callable[[str], object]) -> None:
    """Tells of a worker that is gone."""
    kind, worker = (event[1].get("action"), event[1].get("worker", "")) if isinstance(event, tuple) else ("", "")
    if kind == "remove-worker" and worker not in ended:
        ended.append(worker)
        tell(f"a worker is gone ({worker}): what it had in hand is done again")
