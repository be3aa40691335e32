"""Writes the pages of docs/reference from the code: `python docs/reference.py`.

A test holds the committed pages equal to what this makes.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import json
import re
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_type_hints

import chaoslab as lab
from chaoslab import cli
from chaoslab.analysis import assertions as assertion
from chaoslab.base import registry
from chaoslab.base.commandline import Parser
from chaoslab.campaigns import _spec as campaign
from chaoslab.campaigns import bounds
from chaoslab.config.settings import render_markdown_table
from chaoslab.core import events, triggers
from chaoslab.execution.options import RunOptions
from chaoslab.reports import frames, loaded
from chaoslab.reports._columns import COLUMNS
from chaoslab.reports.fault_pages import describe_bounds, describe_traits
from chaoslab.reports.formats import json as json_format
from chaoslab.scenarios import spec
from chaoslab.scenarios.new_project import read_skill_page
from chaoslab.scenarios.spec import ScenarioSpec
from chaoslab.wire import toxics

FOLDER = Path(__file__).parent / "reference"
MADE = "<!-- Made by docs/reference.py from the code: do not edit. -->\n\n"
UNITS = {
    "average_size": "bytes", "bytes": "bytes", "rate": "kilobytes a second", "size_variation": "bytes",
    "slicer.delay": "microseconds",
}  # fmt: skip
"""Of a toxic's attributes; all others are milliseconds."""


def pages() -> dict[str, str]:
    """The text of each page by the name of its file."""
    made = {
        "frames.md": _frames(), "settings.md": _settings(), "commands.md": _commands(), "python.md": _python(),
        "events.md": _events(),
        "faults.md": _faults(), "scenarios.md": _scenarios(), "triggers.md": _triggers(), "toxics.md": _toxics(),
        "report.md": _report(), "campaigns.md": _campaigns(),
    }  # fmt: skip
    return {name: MADE + text for name, text in made.items()}


def _campaigns() -> str:
    lines = [
        "# Campaigns\n",
        "The keys of a campaign's file, in YAML, JSON or TOML. [Campaigns](../how-to/campaigns.md) shows one.\n",
        "| key | means |\n|---|---|",
        *(f"| `{name}` | {meaning} |" for name, meaning in campaign.KEYS.items()),
    ]
    for key, part in campaign.PARTS.items():
        told = inspect.cleandoc(part.__doc__ or "").replace("\n\n", "\n").replace("\n", " ")
        names = ", ".join(f"`{field.alias or name}`" for name, field in part.model_fields.items())
        lines.append(f"\n## {key}\n\n{told}\n\nKeys: {names}.")
    lines += ["\n## Measures\n", "| measure | is |\n|---|---|"]
    lines += [f"| `{name}` | {meaning} |" for name, meaning in bounds.MEASURES.items()]
    return "\n".join(lines) + "\n"


def _settings() -> str:
    return f"""# Settings

A setting is given on the command line (`make lab TOXIC_PROB=0.3`), in the environment, or in a file `.env`. \
The first of these that names it
counts; else its default does. `chaoslab settings` prints this list as a file `.env.example`, \
`chaoslab settings --markdown` as the table below.

{render_markdown_table()}"""


def _commands() -> str:
    texts = [f"# Commands\n\n{inspect.getdoc(cli.main)}\n"]
    for name in cli.COMMANDS:
        command = importlib.import_module(f"{cli.__name__}.{name.replace('-', '_')}")
        parser = Parser(prog=f"chaoslab {name}", add_help=False)
        command.arguments(parser)
        said = command.HELP[0].upper() + command.HELP[1:]
        texts.append(f"## chaoslab {name}\n\n{said}{'' if said.endswith('?') else '.'}\n")
        texts.append(f"```text\n{command.EXAMPLE}\n```\n")
        rows = [_argument(action) for action in parser._actions]
        if rows:
            texts.append(_table(("argument", "meaning"), rows))
    return "\n".join(texts)


def _report() -> str:
    return f"""# The report as JSON

`chaoslab report RUN --format json` writes a file of this JSON Schema. The number in `schema` changes \
with anything that is no addition.

```json
{json.dumps(json_format.SCHEMA, indent=1)}
```
"""


def _argument(action: argparse.Action) -> tuple[str, str]:
    value = action.metavar or ("{" + ",".join(action.choices) + "}" if action.choices else action.dest.upper())
    takes = "" if action.nargs == 0 else f" {value}"
    named = ", ".join(f"`{option}{takes}`" for option in action.option_strings)
    many = " …" if action.nargs == "*" else ""
    shown = named or f"`{action.metavar or action.dest.upper()}{many}`"
    return shown, (action.help or "") % {**vars(action), "prog": "chaoslab"}


def _python() -> str:
    texts = ["# Python\n\n`import chaoslab as lab` offers these names.\n"]
    for name in sorted(lab.__all__, key=str.lower):
        thing = getattr(lab, name)
        if thing is lab.expect:
            rows = [_assertion(each) for each in registry.list_plugins(assertion.GROUP)]
            texts.append(f"## lab.{name}\n\n{inspect.getdoc(type(thing))}\n\n{_table(('assertion', 'holds if'), rows)}")
            continue
        if not inspect.isclass(thing):
            said = _doc(thing)
            if thing is lab.inject:  # its help lists the parameters of every fault, which have a page of their own
                head, _, _ = said.partition("The faults, with their parameters and defaults:")
                said = f"{head.rstrip()} [Faults](faults.md) has those parameters."
            texts.append(f"## lab.{name}\n\n```text\n{_signature(name, thing)}\n```\n\n{said}\n")
            continue
        texts.append(f"## lab.{name}\n\n{_doc(thing)}\n")
        if thing is lab.Outcome:
            texts.append("Its values: " + ", ".join(f"`{value}`" for value in lab.Outcome) + ".\n")
        rows = [(f"`{key}`", _first(member)) for key, member in vars(thing).items() if _shown(key, member)]
        if rows:
            texts.append(_table(("member", "meaning"), rows))
    return "\n".join(texts)


def _frames() -> str:
    texts = ["# Tables\n\n" + " ".join(_doc(loaded.load).split()) + "\n"]
    for name, columns in COLUMNS.items():
        about = _doc(getattr(frames.Frames, name).func)
        rows = [(f"`{column.name}`", f"`{column.dtype}`", column.meaning) for column in columns]
        texts.append(f"## {name}\n\n{about}\n\n{_table(('column', 'dtype', 'meaning'), rows)}")
    return "\n".join(texts)


def _assertion(name: str) -> tuple[str, str]:
    found = assertion.load_assertion(name)
    signature = str(inspect.signature(found)).removesuffix(" -> None").replace("'", "")
    return f"`{name}{signature}`", " ".join(_doc(found).split())


def _signature(name: str, function: Any) -> str:
    """One parameter a line."""
    lines, starred = [], False
    parameters = inspect.signature(function).parameters
    options = {each.name for each in fields(RunOptions)}
    of_run = options <= set(parameters) and function is not lab.run  # which has them once for all
    for parameter in parameters.values():
        if of_run and parameter.name in options:
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            lines.append("*,")
        starred = starred or parameter.kind is parameter.KEYWORD_ONLY
        default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
        lines.append(
            f"{'**' * (parameter.kind is parameter.VAR_KEYWORD)}{parameter.name}: {parameter.annotation}{default},"
        )
    lines += ["# and the options of run"] if of_run else []
    return f"{name}(\n" + "".join(f"    {line}\n" for line in lines) + ")"


def _shown(key: str, member: Any) -> bool:
    its_own = isinstance(member, property) or inspect.isfunction(member) or type(member).__name__ == "cached_property"
    return its_own and not key.startswith("_")


def _first(member: Any) -> str:
    return _doc(member).replace("\n", " ") or "–"


def _events() -> str:
    texts = [
        "# Events\n\nA run's log holds one JSON object a line. Each line has these fields:\n",
        _table(
            ("field", "meaning"),
            [
                ("`ts`", "when, in UTC (ISO 8601)"),
                ("`t`", "seconds since the run began, by the world's monotonic clock"),
                ("`run`", "the run's name"),
                ("`trial`", "the trial, as in `p3.r1`, or null"),
                ("`writer`", "the part of the lab that wrote the line"),
                ("`seq`", "the line's number among its writer's"),
                ("`kind`", "the kind of event, one of those below; the other fields are the kind's own"),
            ],
        ),
        f"The log's version is {events.VERSION}. Seconds, amounts and counts are numbers of 0 or more; a Moment is "
        "ISO 8601. "
        "Setting, Planned (a plan) and Answered (a reply) are JSON.\n",
        f"Events of one attempt carry its name. {_doc(events.AttemptRef)}\n",
    ]
    for kind, event in events.Event.kinds.items():
        if event.__module__ != events.__name__:
            continue
        told = _told_of_fields(event)
        head = ("field", "type", "default", "meaning") if told else ("field", "type", "default")
        rows = [(f"`{f.name}`", _cell(str(f.type)), _default(f), told.get(f.name, "")) for f in _in_a_line(event)]
        texts += [f"## {kind}\n\n{_doc(event)}\n", _table(head, [row[: len(head)] for row in rows])]
    return "\n".join(texts)


def _in_a_line(event: type[events.Event]) -> Iterator[Field[Any]]:
    """The fields as a line has them: what names an attempt stands beside the others, and its trial in the envelope."""
    for one in _fields(event):
        if one.name == "at":
            yield from (part for part in _fields(events.AttemptRef) if part.name != "trial")
        else:
            yield one


def _fields(owner: Any) -> tuple[Field[Any], ...]:
    return fields(owner)


def _told_of_fields(owner: type) -> dict[str, str]:
    """The text below each field that has one."""
    (body,) = ast.parse(inspect.getsource(owner)).body
    assert isinstance(body, ast.ClassDef)
    found = {}
    for one, after in zip(body.body, body.body[1:], strict=False):
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and isinstance(after, ast.Expr):
            found[one.target.id] = " ".join(str(ast.literal_eval(after.value)).split())
    return found


def _faults() -> str:
    texts = [
        "# Faults\n\n`lab.inject(FAULT, TARGET, chance=…, calls=…, PARAMETER=…)` takes any of these by name; "
        "parameters that end in `_s` are "
        "seconds. A fault of the wire is a toxic on a connection in the lab's local and compose worlds.\n",
        _table(("family", "faults"), [(family, _links(family)) for family in _families()]),
    ]
    for name in registry.list_plugins("faults"):
        fault = registry.load_plugin("faults", name)
        module = importlib.import_module(fault.__module__)
        if not fault.__module__.startswith("chaoslab."):
            continue
        family = fault.__module__.split(".")[-2]
        said = f"Family: {family}. Layer: {fault.layer}. {' '.join(describe_traits(fault))}".rstrip()
        texts.append(f"## {name}\n\n{_story(module, fault)}\n\n{said}\n")
        if fault.example:
            texts.append(f"```text\ninject({fault.example})\n```\n")
        if fault.source:
            texts.append(f"Seen in the real world: {fault.source}\n")
        hints = get_type_hints(fault)
        rows = [
            (f"`{f.name}`", _choices(hints[f.name]) + describe_bounds(fault, f.name), _default(f))
            for f in fields(fault)
        ]
        texts.append(_table(("parameter", "type", "default"), rows) if rows else "It has no parameters.\n")
    return "\n".join(texts)


def _families() -> list[str]:
    return sorted({module.split(".")[-2] for module in registry.map_bundled_plugins("faults").values()})


def _links(family: str) -> str:
    return " ".join(f"[`{name}`](#{name})" for name in registry.list_family_plugins("faults", family))


def _scenarios() -> str:
    texts = [
        "# Keys of a scenario\n\nA scenario's file is YAML, JSON or TOML. `chaoslab check FILE` validates it and runs "
        "nothing, and `chaoslab check --schema` prints the JSON Schema for editors. "
        "[Scenarios](../how-to/scenarios.md) shows how to write one.\n",
        _table(("key", "default", "meaning"), list(_keys(ScenarioSpec))),
    ]
    for holder, part in spec.PARTS.items():
        texts.append(f"## Below `{holder}`\n")
        texts.append(_table(("key", "default", "meaning"), list(_keys(part))))
        if holder == "faults":
            texts.append("Beside these stand [triggers](triggers.md) and the parameters of the [fault](faults.md).\n")
    return "\n".join(texts)


def _keys(model: type[Any]) -> Iterator[tuple[str, str, str]]:
    """A key, its default, and its meaning."""
    said = spec.collect_key_meanings(model)
    for name, of in model.model_fields.items():
        value = of.get_default(call_default_factory=True)
        shown = "required" if of.is_required() else "" if value is None or value in ("", [], {}) else f"`{value}`"
        yield f"`{name}`", shown, _cell(said[name])


def _triggers() -> str:
    texts = [
        "# Triggers\n\nAn injection hits an attempt if all its triggers hold. `lab.inject(FAULT, TARGET, TRIGGER=…)` "
        "takes them by name, `TOXIC_TRIGGERS` and `ERROR_TRIGGERS` as JSON. The target itself may be a pattern with "
        "`*`. Triggers that can never hold together are refused before anything starts.\n"
    ]
    rows = []
    for name in triggers.list_trigger_names():
        trigger = triggers.load_trigger(name)
        rows.append((f"`{name}`", _cell(trigger.should_be), _doc(trigger).replace("\n", " ")))
    texts.append(_table(("trigger", "takes", "meaning"), rows))
    condition = importlib.import_module("chaoslab.core._condition").__doc__ or ""
    texts.append(f"## Conditions\n\n`when` takes a condition. Its grammar:\n\n```text\n{condition.strip()}\n```\n")
    return "\n".join(texts)


def _toxics() -> str:
    texts = [
        "# Toxics\n\nThe embedded Toxiproxy has the toxics of Toxiproxy 2.12, with the API's attributes in the API's "
        "units. "
        "Every attribute is a whole number that defaults to 0. [The embedded Toxiproxy](../toxiproxy.md) tells how it "
        "differs from the "
        "real one.\n"
    ]
    for name in toxics.list_toxic_types():
        toxic = toxics.load_toxic(name)
        module = importlib.import_module(toxic.__module__)
        texts.append(f"## {name}\n\n{_story(module, toxic)}\n")
        rows = [(f"`{f.name}`", _unit(name, f.name)) for f in fields(toxic)]
        texts.append(_table(("attribute", "unit"), rows) if rows else "It has no attributes.\n")
    return "\n".join(texts)


def _story(module: ModuleType, plug_in: type) -> str:
    return f"{(module.__doc__ or '').strip()}\n\n{_doc(plug_in)}"


def _doc(thing: Any) -> str:
    """The docstring as Markdown. An indented line below one that ends with ":" becomes an item of a list; below any
    other line, the indented lines and that line become one item."""
    text = re.sub(r"\n {8,}", " ", inspect.getdoc(thing) or "")  # the rest of an item that wraps
    text = re.sub(r"^(\S.*[^:\n])((?:\n    .+)+)", _item, text, flags=re.MULTILINE)
    text = re.sub(r"^    ", "- ", text, flags=re.MULTILINE)
    return _angles(text.replace(":\n- ", ":\n\n- "))


def _item(found: re.Match[str]) -> str:
    return f"- {found[1]}: {' '.join(found[2].split())}"


def _angles(text: str) -> str:
    """A `<word>` outside of code stands for something and is no HTML."""
    return "".join(part if part.startswith("`") else part.replace("<", "&lt;") for part in re.split(r"(`[^`]*`)", text))


def _choices(hint: Any) -> str:
    return " or ".join(f"`{choice!r}`" for choice in get_args(hint)) or f"{getattr(hint, '__name__', hint)}"


def _default(f: Field[Any]) -> str:
    if f.default_factory is not MISSING:
        return f"`{f.default_factory()!r}`"
    return "" if f.default is MISSING else f"`{f.default!r}`"


def _unit(toxic: str, attribute: str) -> str:
    return UNITS.get(f"{toxic}.{attribute}") or UNITS.get(attribute, "milliseconds")


def _cell(text: str) -> str:
    return text.replace("|", "or")


def _table(head: tuple[str, ...], rows: list[Any]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"|{'|'.join(f' {cell} ' if cell else ' ' for cell in cells)}|\n" for cells in lines)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
        print(FOLDER / name)
    (FOLDER.parent / "for-coding-agents.md").write_text(read_skill_page(), encoding="utf-8")
