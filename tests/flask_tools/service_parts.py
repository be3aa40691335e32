"""Parts of the services' tests: a run in a folder of its own, and a client for any service in it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flask.testing import FlaskClient

from chaoslab.flask_tools.app import create_app
from chaoslab.record.runs import Run

NOW = "2026-06-01T09:00:00Z"
EVENTS = "/calendar/v3/calendars/primary/events"


@contextmanager
def service(name: str, logs: Path) -> Iterator[FlaskClient]:
    app = create_app(name, logs=logs, now=NOW)
    try:
        yield app.test_client()
    finally:
        app.extensions["ledger"].close()


def trial(logs: Path, prompt: int = 1) -> dict[str, str]:
    """The header of a trial in this folder's run, which is made when there is none."""
    runs = [path.name for path in logs.glob("2*")]
    name = runs[0] if runs else Run.create(logs, now=NOW).name
    return {"X-Trial": f"{name}.p{prompt}.r1"}
