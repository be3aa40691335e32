"""The row of one framework in a table that a script measures, on standard output and, with --write, in its file."""

import json
import logging
import sys


def main(run, agents, file):
    """Runs the agent that the command names. `run`: gives its row by its name."""
    logging.disable(logging.CRITICAL)
    name = sys.argv[1]
    row = run(name)
    print(json.dumps(row, indent=1, ensure_ascii=False))
    if "--write" in sys.argv:
        rows = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        rows = {key: {**rows, name: row}[key] for key in agents if key in {**rows, name: row}}
        file.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
