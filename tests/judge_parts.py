"""A server on loopback with OpenAI's chat completions, as a judge; and a run whose answers nothing certain decides."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import chaoslab as lab

SAYS = {"said": "not done", "facts": "no"}


class Server(BaseHTTPRequestHandler):
    """Replies to each question with what `says` makes of its data; a text is sent as it is."""

    says: Callable[[dict[str, Any]], Any]
    status = 200
    usage: Any = {"prompt_tokens": 100, "completion_tokens": 10}  # noqa: RUF012
    asked: list[tuple[str, dict[str, Any]]]
    """The rule and the data of each question."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        rule, data = (message["content"] for message in body["messages"])
        self.asked.append((rule, json.loads(data)))
        found = type(self).says(json.loads(data))
        content = found if isinstance(found, str | type(None)) else json.dumps(found)
        sent = json.dumps({"choices": [{"message": {"content": content}}], "usage": self.usage}).encode()
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *_: Any) -> None: ...


@contextmanager
def served(patch: pytest.MonkeyPatch, says: Callable[[dict[str, Any]], Any]) -> Iterator[type[Server]]:
    """A judge that the environment names as the model gpt-4o-mini, whose price is known."""
    there = type("There", (Server,), {"asked": [], "says": staticmethod(says)})
    with ThreadingHTTPServer(("127.0.0.1", 0), there) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        patch.setenv("JUDGE_URL", f"http://127.0.0.1:{server.server_port}/v1")
        patch.setenv("JUDGE_MODEL", "gpt-4o-mini")
        yield there
        server.shutdown()


def refund(order: int) -> str:
    return f"ok {order}"


def agent(prompt: str) -> str:
    """It words a failure so that no pattern reads it."""
    try:
        refund(17)
    except (OSError, lab.ToolError) as error:
        return f"Something odd came up, alas: {type(error).__name__}."
    return f"All is well with it. {prompt[:0]}"


FAULTS = [lab.inject("timeout", "refund", chance=0.5), lab.inject("tool_error", "refund", chance=0.5)]


def trials(count: int = 6, **more: Any) -> list[lab.Trial]:
    """Trials of which the first, second, third and fifth have such an answer; the second refunds all the same."""
    return list(lab.run_many(agent, "Refund order 17.", trials=count, tools=[refund], faults=FAULTS, **more))


def written(logs: Path, count: int = 6, **more: Any) -> Path:
    """The folder of such a run."""
    trials(count, logs=logs, **more)
    return (logs / "latest").resolve()
