"""Draws docs/report.png, the head of a report with harm in it: `python docs/report_picture.py`. It needs Chromium."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

PICTURE = Path(__file__).parent / "report.png"
RUN = ("WORLD=virtual", "SEED=3", "REPEATS=2", "HALLUCINATION_PROB=0.3", "TOXIC_PROB=0.2")
WIDTH, HEIGHT = 1280, 1400


def main() -> None:
    """Makes the run, and takes the picture."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("docs/report.png is drawn by Chromium, which is not installed (apt-get install chromium)")
    with TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "chaoslab", "lab", "--quiet", *RUN], cwd=folder, check=True, timeout=300)
        page = Path(folder) / "logs" / "latest" / "report.html"
        options = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            f"--window-size={WIDTH},{HEIGHT}",
        ]
        options += ["--blink-settings=preferredColorScheme=1", f"--screenshot={PICTURE}"]
        subprocess.run([browser, *options, page.resolve().as_uri()], check=True, timeout=120)


if __name__ == "__main__":
    main()
