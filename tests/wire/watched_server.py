"""The embedded server in a process of its own that, asked by a line on stdin, says what it holds.

Run as `python watched_server.py LOOP`; it says at which port it listens.
"""

import asyncio
import ctypes
import gc
import json
import os
import re
import sys
from collections import Counter
from pathlib import Path

from chaoslab.core.pipe import PacedQueue, Pipeline
from chaoslab.wire.server import serve
from chaoslab.wire.server.end import AttachedToxic, ProxyEnd
from chaoslab.wire.server.process import choose_loop_factory, raise_open_file_limit
from chaoslab.wire.server.proxy import Proxy, ProxyConnection

WATCHED = (Proxy, AttachedToxic, ProxyConnection, ProxyEnd, Pipeline, PacedQueue)


def held() -> dict[str, int]:
    """The numbers of files, tasks and watched objects, and the memory (KB) once all that is free is given back."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    found = Counter(type(thing).__name__ for thing in gc.get_objects() if isinstance(thing, WATCHED))
    memory = re.search(r"VmRSS:\s*(\d+)", Path("/proc/self/status").read_text(encoding="ascii"))
    assert memory
    return {
        **{kind.__name__: found[kind.__name__] for kind in WATCHED},
        "files": len(os.listdir("/proc/self/fd")),
        "tasks": len(asyncio.all_tasks()),
        "memory_kb": int(memory[1]),
    }


async def main() -> None:
    def look() -> None:
        if not os.read(sys.stdin.fileno(), 100):
            sys.exit(0)
        print(json.dumps(held()), flush=True)

    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), look)
    await serve(
        host="127.0.0.1", port=0, config=None, seed=1,
        ready=lambda _, port: print(port, flush=True),
    )  # fmt: skip


if __name__ == "__main__":
    raise_open_file_limit()
    with asyncio.Runner(loop_factory=choose_loop_factory(sys.argv[1])) as runner:
        runner.run(main())
