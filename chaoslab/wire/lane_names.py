"""The names of lanes on Toxiproxy, which end with the moment until which their maker answers for them."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chaoslab.wire.toxiproxy_package import ToxiproxyServer

# The lease stands in the name: it is all that a server keeps of a proxy for whoever finds it after its maker died.
_LEASED = re.compile(r"lane\..*\.([0-9]{1,12})", re.DOTALL)


def make_lane_name(target: str, run: str, number: int, until: int) -> str:
    """The name of a lane. `until`: the end of its lease in seconds since 1970."""
    return f"lane.{target}.{run}.{number}.{until}"


def delete_all_lanes(toxiproxy: "ToxiproxyServer") -> int:
    """Deletes all lanes of a Toxiproxy, whoever made them. Returns their number. Raises ToxiproxyError: it does not
    answer, or refuses."""
    from chaoslab.wire.proxies import ToxiproxyError

    names = [name for name in toxiproxy.proxies() if _LEASED.fullmatch(name)]
    for name in names:
        try:
            toxiproxy.destroy(name)
        except ToxiproxyError as error:
            if error.status != 404:  # else its call was over meanwhile
                raise
    return len(names)


def is_lane_expired(name: str, now: float) -> bool:
    """True for the name of a lane whose lease has expired. `now`: in seconds since 1970."""
    match = _LEASED.fullmatch(name)
    return match is not None and int(match[1]) < now
