"""Measures what sending traces costs, beside the episodes that they are of: `python benchmarks/otlp.py [TRIALS]`.

CPU seconds. The sender is a process of its own, so a run with `--otlp` costs what it does without, and what the sender
does. Both are measured with one trial and with many; the difference is that of an episode. The collector is not
counted. Exits 1 if the goal is missed.
"""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

GOAL = 0.15
RECEIVER = """
from http.server import BaseHTTPRequestHandler, HTTPServer
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")
    def log_message(self, *_): pass
server = HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""


def cpu_s(*asked: str, given: str = "") -> float:
    """The CPU seconds of a command of the lab."""
    before = os.times()
    program = (sys.executable, "-P", "-m", "chaoslab")
    subprocess.run((*program, *asked), check=False, stdout=subprocess.DEVNULL, input=given, text=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def measured(trials: int, url: str) -> tuple[float, float]:
    """The CPU seconds of a run of the lab's own agent in virtual time, and of sending it."""
    run_s = cpu_s("run", "--world", "virtual", "--trials", str(trials), "-q")
    return run_s, cpu_s("otlp", "-", "--to", url, given=f"{Path('logs/latest').resolve()}\n")


def main(trials: int) -> int:
    receiver = subprocess.Popen((sys.executable, "-c", RECEIVER), stdout=subprocess.PIPE, text=True)
    assert receiver.stdout is not None
    url = f"http://127.0.0.1:{receiver.stdout.readline().strip()}"
    try:
        with TemporaryDirectory() as folder:
            os.chdir(folder)
            one_s, start_s = measured(1, url)
            many_s, sent_s = measured(trials, url)
    finally:
        receiver.terminate()
        receiver.wait()
    episode_ms, sending_ms = ((many - one) / (trials - 1) * 1e3 for many, one in ((many_s, one_s), (sent_s, start_s)))
    share = sending_ms / episode_ms
    print(f"| an episode, CPU ms | {episode_ms:.2f} |")
    print(f"| sending its trace, in a process of its own | {sending_ms:.2f} ({share:.0%}) |")
    print(f"| starting that process, CPU s | {start_s:.2f} |")
    return 0 if share <= GOAL else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 500))
