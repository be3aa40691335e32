"""`chaoslab stop`: pulls the levers that all parts on this machine and in its containers watch, and releases them."""

import argparse
import getpass
from contextlib import suppress
from pathlib import Path

from chaoslab.base.commandline import parse_nonempty, parse_path, print_error

HELP = "stop all faults at once, in every process, until --release"
EXAMPLE = "chaoslab stop --all --why 'orders are late'"


def arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_mutually_exclusive_group(required=True)
    actions.add_argument("--all", action="store_true", help="pull the lever: no process makes a fault")
    actions.add_argument("--release", action="store_true", help="release it")
    actions.add_argument("--status", action="store_true", help="exit code 1 if it is pulled")
    parser.add_argument("--why", type=parse_nonempty, metavar="TEXT", help="the reason, for the logs")
    parser.add_argument("--lever", type=parse_path, metavar="FILE", help="another lever, as named in limits")
    parser.add_argument(
        "--toxiproxy", type=parse_nonempty, metavar="URL", help="with --all: delete the lanes of this Toxiproxy too"
    )


def run(options: argparse.Namespace) -> int:
    from chaoslab.base import levers

    # Where a lab is, its own lever too: its parts in containers see no home.
    has_lab = levers.LAB.exists() or levers.LAB.with_name("state.db").exists()
    known_levers = [levers.LEVER, *([levers.LAB] if has_lab else [])]
    exit_code = 0
    for lever in known_levers if options.lever is None else [options.lever]:
        try:
            exit_code |= _act_on_stop_file(lever, options)
        except OSError as error:
            exit_code = print_error(error)
    if exit_code or not options.all:
        return exit_code
    _print_left_gateways()
    return _delete_lanes(options.toxiproxy) if options.toxiproxy else 0


def _act_on_stop_file(lever: Path, options: argparse.Namespace) -> int:
    from chaoslab.base import levers

    if options.status:
        reason = levers.read_stop_reason(lever)
        print(f"the lever {lever} is {f'pulled: {reason}' if reason else 'not pulled'}")
        return int(bool(reason))
    if options.release:
        was_pulled = levers.remove_stop_file(lever)
        print(f"the lever {lever} {'is released: faults may be made again' if was_pulled else 'was not pulled'}")
    else:
        levers.write_stop_file(lever, f"{_get_user_name()}: {options.why or 'stop --all'}")
        print(f"the lever {lever} is pulled: no fault is made, and those that last end, until chaoslab stop --release")
    return 0


def _print_left_gateways() -> None:
    """Names the gateways that campaigns have left in the path of traffic. They make no faults, and to end one may cut
    that traffic off, so the lever does not."""
    from chaoslab.campaigns import journal, presence

    for folder in sorted(file.parent for file in Path("campaigns").glob(f"*/{journal.FILE}")):
        units: list[journal.DoneUnit] = []
        with suppress(OSError, ValueError):  # one that cannot be read keeps nobody from stopping
            units = presence.list_gateways_there(folder, journal.read_journal(folder).running_and_left_gateways)
        for unit in units:
            message = (
                f"{unit.name} of the campaign {folder.name} passes traffic on, without faults (process {unit.group})"
            )
            print(f"{message}: chaoslab campaign stop FILE ends it")


def _get_user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container without the user's name
        return "somebody"


def _delete_lanes(url: str) -> int:
    from chaoslab.wire.lane_names import delete_all_lanes
    from chaoslab.wire.proxies import ToxiproxyError
    from chaoslab.wire.toxiproxy_package import ToxiproxyServer

    try:
        with ToxiproxyServer(url) as toxiproxy:
            print(f"{delete_all_lanes(toxiproxy)} lanes deleted at {url}")
    except ToxiproxyError as error:
        return print_error(error)
    return 0
