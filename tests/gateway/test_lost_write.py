"""A command whose write the lab left without its reply: the log alone shows that it was done twice."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from chaoslab.cli import main
from chaoslab.core.events import FaultInjected
from tests.gateway.parts import history

TWICE = "POST /refunds took effect twice: its first reply was lost"
ORDERS = """
import json, os, sys, urllib.request
shop = os.environ["SHOP_URL"]
urllib.request.urlopen(shop + "/orders", timeout=600).read()
for patience_s in (3, 60, 600):
    asked = urllib.request.Request(shop + "/refunds", b'{"order": 17}', json.loads(sys.argv[1]), method="POST")
    try:
        urllib.request.urlopen(asked, timeout=patience_s).read()
        break
    except TimeoutError:
        continue
print("done")
"""


@pytest.mark.parametrize(
    ("headers", "code", "said"),
    [({}, 1, f"chaoslab: harm – {TWICE} ("), ({"Idempotency-Key": "k"}, None, "chaoslab: unknown – ")],
)
def test_a_command_about_which_nothing_is_stated(
    headers: dict[str, str], code: int | None, said: str, crm: str, tmp_path: Path, capfd: Any
) -> None:
    """`--fault lost_reply:shop` passes the read and takes the reply to the first call that changes something."""
    options = ["--logs", str(tmp_path), "--route", crm.replace("crm=", "shop=")]
    command = [sys.executable, "-c", ORDERS, json.dumps(headers)]
    ended = main(["exec", *options, "--fault", "lost_reply:shop", "--", *command])
    assert capfd.readouterr().err.startswith(said)
    assert code is None or ended == code
    assert [event.request for _, event in history(tmp_path).find_events(FaultInjected)] == [2]
