"""A headless Chromium that is driven over its debugging pipe: it walks pages as a person does."""

import base64
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from chaoslab.base.clock import system
from tests.reports.browser import CHROMIUM
from tests.waiting import HUNG_S

PATIENCE_S = 60.0
"""The threads that read logs have the lowest priority: on a busy machine they get a hundredth of it."""
AXE = """axe.run(document).then(
  (found) => found.violations.map((one) => [one.impact, one.id, one.nodes[0].html, one.nodes[0].failureSummary]))"""
SERIOUS = ("serious", "critical")
CODES = {"Tab": 9, "Enter": 13, " ": 32}


class Browser:
    """One page of a browser. `console`: what pages have complained of."""

    def __init__(self, send: int, hear: int) -> None:
        self._send, self._hear, self._rest, self._count = send, hear, b"", 0
        self.console: list[str] = []
        self.patience_s = PATIENCE_S
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The browser's answer to a method of its protocol."""
        self._count += 1
        asked = {"id": self._count, "method": method, "params": params}
        if hasattr(self, "_session"):
            asked["sessionId"] = self._session
        os.write(self._send, json.dumps(asked).encode() + b"\0")
        while True:
            message = self._message()
            if message.get("id") == self._count:
                assert "error" not in message, message
                return dict(message["result"])

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            self._rest += os.read(self._hear, 1 << 20) or pytest.fail("the browser has ended")
        text, self._rest = self._rest.split(b"\0", 1)
        message = dict(json.loads(text))
        if message.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
            self.console.append(json.dumps(message["params"])[:400])
        return message

    def do(self, script: str) -> Any:
        """The value of an expression in the page; a promise is waited for."""
        found = self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True, userGesture=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def until(self, script: str) -> None:
        """Waits until an expression in the page is true; in a page that is not there yet it is not."""
        began_s = system.monotonic()
        careful = f"(() => {{ try {{ return Boolean({script}) }} catch {{ return false }} }})()"
        while not self.do(careful):
            assert system.monotonic() - began_s < self.patience_s, (script, self.do("document.body.innerText")[:2000])
            system.sleep(0.02)

    def open(self, address: str, *, ready: str = "document.readyState === 'complete'") -> None:
        self.ask("Page.navigate", url=address)
        self.until(f"location.href !== 'about:blank' && document.readyState === 'complete' && {ready}")

    def press(self, key: str, code: str = "", text: str = "") -> None:
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=code or key,
                      text=text if kind == "keyDown" else "", windowsVirtualKeyCode=CODES.get(key, 0))  # fmt: skip

    def size(self, width: int, height: int = 900) -> None:
        self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )

    def dark(self, wanted: bool) -> None:
        scheme = "dark" if wanted else "light"
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def picture(self, path: Path) -> None:
        found = self.ask("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(found["data"]))

    def run_axe(self, axe: str) -> list[str]:
        """The serious findings of axe in this page. It is put in past the page's policy."""
        self.do(axe)
        found = self.do(AXE)
        return [f"{rule} ({impact}): {html} {why}" for impact, rule, html, why in found if impact in SERIOUS]


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """A browser with a profile of its own in this folder. Skips the test where no Chromium is installed."""
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed here")
    (its_in, send), (hear, its_out) = os.pipe(), os.pipe()
    words = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
        "--remote-debugging-pipe", f"--user-data-dir={folder / 'profile'}", "about:blank",
    ]  # fmt: skip
    # The pipe is at the numbers 3 and 4, whatever they are here.
    line = f'exec 3<&{its_in} 4>&{its_out}; exec "$@"'
    child = subprocess.Popen(
        ["bash", "-c", line, "bash", *words], pass_fds=(its_in, its_out), stderr=subprocess.DEVNULL
    )
    os.close(its_in)
    os.close(its_out)
    try:
        yield Browser(send, hear)
    finally:
        os.close(send)
        child.terminate()
        child.wait(HUNG_S)
        os.close(hear)
