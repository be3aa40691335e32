"""A collector on loopback that reads OTLP with OpenTelemetry's own classes."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


def plain(value: Any) -> Any:
    """A value of an attribute."""
    of = value.WhichOneof("value")
    return [plain(each) for each in value.array_value.values] if of == "array_value" else of and getattr(value, of)


class Receiver:
    """The bodies that a collector got. `bodies`: as they came, by path. `status`: what it answers."""

    def __init__(self) -> None:
        self.bodies: list[tuple[str, bytes]] = []
        self.headers: list[dict[str, str]] = []
        self.status = 200
        self.url = ""

    @property
    def traces(self) -> list[Any]:
        """The requests with spans, read by the classes of the protocol."""
        return [ExportTraceServiceRequest.FromString(body) for path, body in self.bodies if path == "/v1/traces"]

    @property
    def spans(self) -> list[Any]:
        """All spans."""
        return [
            span for request in self.traces for of in request.resource_spans for s in of.scope_spans for span in s.spans
        ]

    @property
    def metrics(self) -> dict[str, Any]:
        """The last of each metric, by its name."""
        found: dict[str, Any] = {}
        for path, body in self.bodies:
            if path == "/v1/metrics":
                request = ExportMetricsServiceRequest.FromString(body)
                found |= {m.name: m for of in request.resource_metrics for s in of.scope_metrics for m in s.metrics}
        return found


def has(of: Any) -> dict[str, Any]:
    """The attributes of a span, an event or a point."""
    return {each.key: plain(each.value) for each in of.attributes}


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A collector on a free port of loopback."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.bodies.append((self.path, body))
            receiver.headers.append(dict(self.headers))
            self.send_response(receiver.status)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_port}"
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
