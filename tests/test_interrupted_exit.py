"""An interrupt that was handled ends a program with its own exit code, wherever it struck."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
from chaoslab.base.commandline import get_interrupt_exit_code


def main():
    try:
        {strike}
    except KeyboardInterrupt:
        return {code}


sys.exit(main())
"""
IN_A_TEXT = "exec('raise KeyboardInterrupt')"


@pytest.mark.parametrize(
    ("strike", "code", "ends_with"),
    [
        ("raise KeyboardInterrupt", "get_interrupt_exit_code()", 130),
        (IN_A_TEXT, "get_interrupt_exit_code()", 130),
        (IN_A_TEXT, "130", -2),
    ],
    ids=["in a line", "in a text that is executed", "in such a text, if nothing were done about it"],
)
def test_it_ends_with_its_code(tmp_path: Path, strike: str, code: str, ends_with: int) -> None:
    (tmp_path / "program.py").write_text(PROGRAM.format(strike=strike, code=code))
    ended = subprocess.run([sys.executable, "-m", "program"], cwd=tmp_path, env=dict(os.environ), check=False)
    assert ended.returncode == ends_with
