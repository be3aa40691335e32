"""`chaoslab stop`: pulls the levers that all parts on this machine and in its containers watch, and releases them."""

import argparse
import getpass
from contextlib import suppress
from pathlib import Path

from chaoslab.base.commandline import filled, path, refuse

HELP = "end all faults now, whoever makes them, until --release"
EXAMPLE = "chaoslab stop --all --why 'orders are late'"


def arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--all", action="store_true", help="pull the lever: no part makes a fault")
    what.add_argument("--release", action="store_true", help="release it")
    what.add_argument("--status", action="store_true", help="tell if it is pulled: exit code 1 if it is")
    parser.add_argument("--why", type=filled, metavar="TEXT", help="the reason, which the logs tell")
    parser.add_argument("--lever", type=path, metavar="FILE", help="another lever, which limits name")
    parser.add_argument(
        "--toxiproxy", type=filled, metavar="URL", help="with --all: delete the lanes of this Toxiproxy too"
    )


def run(options: argparse.Namespace) -> int:
    from chaoslab.base import levers

    # Where a lab is, its own lever too: its parts in containers see no home.
    there = levers.LAB.exists() or levers.LAB.with_name("state.db").exists()
    own = [levers.LEVER, *([levers.LAB] if there else [])]
    ended = 0
    for lever in own if options.lever is None else [options.lever]:
        try:
            ended |= _one(lever, options)
        except OSError as error:
            ended = refuse(error)
    if ended or not options.all:
        return ended
    _tell_left()
    return _lanes_of(options.toxiproxy) if options.toxiproxy else 0


def _one(lever: Path, options: argparse.Namespace) -> int:
    from chaoslab.base import levers

    if options.status:
        said = levers.pulled(lever)
        print(f"the lever {lever} is {f'pulled: {said}' if said else 'not pulled'}")
        return int(bool(said))
    if options.release:
        was = levers.release(lever)
        print(f"the lever {lever} {'is released: faults may be made again' if was else 'was not pulled'}")
    else:
        levers.pull(lever, f"{_user()}: {options.why or 'stop --all'}")
        print(f"the lever {lever} is pulled: no fault is made, and those that last end, until chaoslab stop --release")
    return 0


def _tell_left() -> None:
    """Names the gateways that campaigns have left in the path of traffic. They make no faults, and to end one may cut
    that traffic off, so the lever does not."""
    from chaoslab.campaigns import journal

    for folder in sorted(file.parent for file in Path("campaigns").glob(f"*/{journal.FILE}")):
        left: list[journal.DoneUnit] = []
        with suppress(OSError, ValueError):  # one that cannot be read keeps nobody from stopping
            left = journal.read(folder).left
        for each in left:
            said = f"{each.name} of the campaign {folder.name} passes traffic on, without faults (process {each.group})"
            print(f"{said}: chaoslab campaign stop FILE ends it")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container without the user's name
        return "somebody"


def _lanes_of(url: str) -> int:
    from chaoslab.wire.lane_names import delete_all
    from chaoslab.wire.proxies import ToxiproxyError
    from chaoslab.wire.toxiproxy_package import ToxiproxyServer

    try:
        with ToxiproxyServer(url) as toxiproxy:
            print(f"{delete_all(toxiproxy)} lanes deleted at {url}")
    except ToxiproxyError as error:
        return refuse(error)
    return 0
