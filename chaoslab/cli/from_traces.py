"""`chaoslab from-traces`: scenarios from the traces of an agent in production."""

from __future__ import annotations

import argparse
from pathlib import Path

from chaoslab.base.commandline import path, refuse, whole

HELP = "write scenarios, with stand-ins for the tools, from the traces of an agent: OTLP, Phoenix, Langfuse"
EXAMPLE = "chaoslab from-traces traces.jsonl --out chaos"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("traces", type=path, metavar="FILE|DIR", help="JSON or JSON lines, or a folder of them")
    parser.add_argument("--out", type=path, default=Path("chaos"), metavar="DIR", help="where to write (%(default)s)")
    parser.add_argument("--most", type=whole(1, 1000), default=20, help="scenario files at most (%(default)s)")
    parser.add_argument(
        "--no-mask", action="store_true", help="keep keys, e-mail addresses, phone and card numbers as they are"
    )


def run(options: argparse.Namespace) -> int:
    from chaoslab.base import extras

    extras.check("chaoslab from-traces", "scenarios")
    from chaoslab.scenarios.new_project import write
    from chaoslab.surfaces.otel.calls import found_in
    from chaoslab.surfaces.otel.masking import Personal
    from chaoslab.surfaces.otel.reading import spans_in
    from chaoslab.surfaces.otel.writing import project_of

    notes: list[str] = []
    personal = Personal(on=not options.no_mask)
    try:
        found = found_in(spans_in(options.traces, notes))
        made = project_of(found, most=options.most, personal=personal)
        if not any(name.endswith(".yaml") for name in made.files):
            return refuse(LookupError(f"{options.traces}: no call of a tool has a reply: {made.lacking[0]}"))
        paths = write({options.out / name: text for name, text in made.files.items()}, options.out)
    except ValueError as error:
        return refuse(error if str(options.traces) in str(error) else ValueError(f"{options.traces}: {error}"))
    except OSError as error:
        return refuse(OSError(f"{error.filename or options.out}: {error.strerror or error}"))
    print(*paths, sep="\n")
    for note in notes:
        print(f"note: {note}")
    scenarios = sum(each.name.endswith(".yaml") for each in paths)
    print(f"{made.kept} of {made.calls} tool calls are in {scenarios} scenarios")
    if made.masked:
        print("masked: " + ", ".join(f"{count} × {kind}" for kind, count in made.masked.items()))
    for line in dict.fromkeys(made.lacking):
        print(f"not derived: {personal.text(line)}")
    print(f"next: chaoslab test {options.out}")
    return 0
