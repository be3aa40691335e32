"""The levers of any run that goes on: those of a gateway are asked for at its address, all others by a file in the
run's folder (`record.steering`)."""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from chaoslab.base import files
from chaoslab.base.jsonable import to_one_line
from chaoslab.base.shapes import Shape, Within
from chaoslab.record import steering
from chaoslab.record.held import has_live_writer
from chaoslab.seams.gateway.controls import PATH

FILE = "levers.json"
"""The file in the folder of a gateway's run that tells the port and the token of its levers, to its user alone, while
it stands."""
ANSWER_S, ANSWER_MAX, SAID = 5.0, 1 << 20, 300
"""The longest wait for a gateway's answer, in seconds, and the most bytes of one, and characters of an error."""
WORDS = ("pause", "resume", "stop")


@dataclass(frozen=True)
class ControlEndpoint:
    """The place of a gateway's levers on loopback."""

    port: Annotated[int, Within(1, 65535)]
    token: str = field(repr=False)

    @classmethod
    def read_from_folder(cls, folder: Path) -> "ControlEndpoint | None":
        """The place that a run's folder tells; None if it tells none."""
        with suppress(ValueError, OSError):
            if isinstance(data := files.read_json(folder / FILE), dict):
                place_read: ControlEndpoint = _SHAPE.make_instance(data)
                return place_read
        return None

    def ask_gateway(self, method: str, lever: str, *, run: str) -> dict[str, Any]:
        """The answer of the gateway to a request for a lever. Raises LookupError: it does not answer. ValueError: it
        cannot do that; the message is its own."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_S)
        try:
            connection.request(method, f"{PATH}{self.token}/{lever}")
            answer = connection.getresponse()
            # At most ANSWER_MAX: another program may listen at the port by now.
            content = json.loads(answer.read(ANSWER_MAX))
        except (OSError, HTTPException, ValueError):
            raise LookupError(f"the gateway of {run} does not answer at 127.0.0.1:{self.port}") from None
        finally:
            connection.close()
        if answer.status != 200 or not isinstance(content, dict):
            raise ValueError(
                to_one_line(str(content.get("error", "")) if isinstance(content, dict) else str(content), SAID)
            )
        return content


_SHAPE = Shape.build(ControlEndpoint)


@contextmanager
def publish_control_endpoint(folder: Path, lever_place: ControlEndpoint) -> Iterator[None]:
    """A context in which the run's folder tells where its levers are. Raises OSError: it cannot be written."""
    path = folder / FILE
    # For its user alone: the token steers the run.
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        json.dump(vars(lever_place), file)
    try:
        yield
    finally:
        # missing_ok, since the folder may have been cleared meanwhile.
        path.unlink(missing_ok=True)


def steer_run(folder: Path, words: Sequence[str]) -> list[str]:
    """Has a run do this. Returns what will happen, a line each. `words`: as `record.steering.steer_run`; of a gateway
    pause, resume, stop, FAULT=off, FAULT=on and FAULT=chance. Raises ValueError: a word is none of these, or the run
    cannot do it; the message says why. LookupError: its gateway does not answer. OSError: it cannot be written."""
    # The file of a run that was killed still stands there.
    lever_place = ControlEndpoint.read_from_folder(folder) if has_live_writer(folder) else None
    if lever_place is None:
        # All others look for words in their folder.
        return steering.steer_run(folder, words)
    return [_send_control_request(lever_place, folder.name, *_parse_control_word(word)) for word in words]


def _parse_control_word(word: str) -> tuple[str, str]:
    """The lever of a gateway that a word stands for, and what will happen."""
    # From the right: an injection's name may hold = itself.
    name, _, value = word.rpartition("=")
    if word in WORDS:
        meanings = {"pause": "it makes no fault", "resume": "it makes faults again", "stop": "it ends"}
        return word, meanings[word]
    if not name:
        raise ValueError(f"{word[:40]!r} should be {', '.join(WORDS)}, or a fault of its plan with =off, =on or =0.3")
    # quote with safe="": a name may hold a slash.
    action = value if value in ("off", "on") else f"chance/{quote(value, safe='')}"
    return f"faults/{quote(name, safe='')}/{action}", f"'{name}' is {value} from the next request on"


def _send_control_request(lever_place: ControlEndpoint, run: str, lever: str, message: str) -> str:
    lever_place.ask_gateway("POST", lever, run=run)
    return message


def read_gateway_state(folder: Path) -> dict[str, Any] | None:
    """The state of a gateway and of each fault of its plan, as it answers; None if the run is of none with levers.
    Raises LookupError: it does not answer. ValueError: it cannot tell."""
    lever_place = ControlEndpoint.read_from_folder(folder) if has_live_writer(folder) else None
    if lever_place is None:
        return None
    run = folder.name
    return {
        **lever_place.ask_gateway("GET", "status", run=run),
        "faults": lever_place.ask_gateway("GET", "faults", run=run)["faults"],
    }
