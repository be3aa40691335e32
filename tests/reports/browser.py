"""A headless Chromium that opens a page and returns the findings of its script."""

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import HUNG_S

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def browse(page: Path, *flags: str) -> dict[str, Any]:
    """The JSON that the page wrote into its element `seen`. Skips the test where no Chromium is installed; fails it if
    the page wrote to the console."""
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed here")
    done = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", "--no-first-run",
         "--disable-background-networking", "--enable-logging=stderr", f"--user-data-dir={page.parent / 'profile'}",
         "--virtual-time-budget=20000", *flags, "--dump-dom", page.as_uri()],
        capture_output=True, text=True, timeout=HUNG_S, check=True,
    )  # fmt: skip
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
    seen = re.search(r'<pre id="seen">(.*?)</pre>', done.stdout, flags=re.DOTALL)
    assert seen is not None, done.stdout[-2000:]
    return dict(json.loads(unescape(seen[1])))
