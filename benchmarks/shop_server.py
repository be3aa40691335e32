"""A small shop on loopback for the commands of `front_door.py`: `python shop_server.py` prints its port."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Shop(BaseHTTPRequestHandler):
    """Orders to read; refunds and mails to make."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._say({"id": 17, "total": 30, "mail": "ana@example.org"})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._say({"ok": True})

    def _say(self, value: Any) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Shop)
    print(server.server_port, flush=True)
    server.serve_forever()
