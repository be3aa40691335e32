"""A run's report as JSON. `SCHEMA` describes it; a change that is no addition gets a new number."""

import json
from functools import partial
from typing import Any

from chaoslab.analysis.measures.intervals import Rate
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.guard import guarded
from chaoslab.analysis.verdict.ledger import FindingKind
from chaoslab.analysis.verdict.standing import Standing
from chaoslab.analysis.verdict.table import Basis, Outcome, Said, WorldState
from chaoslab.record.rulings import Rulings
from chaoslab.record.rulings import RulingState as Ruled
from chaoslab.reports.contents import NAME, SHOWN, Contents
from chaoslab.reports.contents._matrix import CellState
from chaoslab.reports.contents._rows import TrialRow
from chaoslab.reports.contents._tables import ROWS
from chaoslab.reports.contents.headline import Tone
from chaoslab.reports.text import visible

FILE = "report.json"
VERSION = 3


def files(contents: Contents) -> dict[str, str]:
    """The file."""
    spelt = json.dumps(value(contents), ensure_ascii=False, indent=1, allow_nan=False, default=_fields)
    return {FILE: spelt + "\n"}


def value(contents: Contents) -> dict[str, Any]:
    """The report as JSON values, but for what `_fields` makes one of."""
    head, report = contents.headline, contents.report
    cells = [vars(cell) for cells in contents.matrix.rows.values() for cell in cells]
    return {
        "schema": VERSION,
        "run": contents.facts,
        "notes": report.notes,
        "verdict": {
            **{name: of for name, of in vars(head).items() if name != "delivery"},
            "faults": head.delivery._asdict() if head.delivery else None,
        },
        "scenario": _scenario(report.rulings),
        "outcomes": report.success.value.by_outcome,
        "basis": report.grounds.value.by_basis,
        "harm": [
            {"kind": harm.kind, "findings": harm.findings, "trials": harm.trials[:SHOWN]} for harm in contents.harms
        ],
        "matrix": [{name: of for name, of in cell.items() if name != "at_worst"} for cell in cells],
        "hurt_most": contents.hurt_most,
        "figures": contents.figures,
        "tables": {name: guarded(partial(_listed, rows, report), _none) for name, rows in ROWS.items()},
        "advice": [
            {
                **{name: getattr(one, name) for name in ("seen", "do", "size")},
                "trials": one.trials[:SHOWN],
                "replay": contents.replay(one.trials[0]),
            }
            for one in contents.advice
        ],
        "trials": [_trial(contents, row) for row in contents.rows],
        "left_out": {"trials": len(contents.order) - len(contents.rows), "said": contents.more},
    }


def _listed(rows: Any, report: RunReport) -> list[Any]:
    return list(rows(report))


def _none(_why: str) -> None:
    """The table of a measure that failed; the figures say why."""


def _fields(of: Any) -> dict[str, Any]:
    """A rate with the ends of its interval; of another dataclass its fields."""
    return (
        {"count": of.count, "total": of.total, "prompts": of.prompts, **vars(of.interval)}
        if isinstance(of, Rate)
        else vars(of)
    )


def _scenario(rulings: Rulings | None) -> dict[str, Any] | None:
    if rulings is None:
        return None
    return {
        "name": visible(rulings.scenario, NAME),
        "asked": [visible(text, NAME) for text in rulings.asked],
        "trials": rulings.trials,
        "state": rulings.state,
        "why": [visible(text, NAME) for text in rulings.why],
    }


def _trial(contents: Contents, row: TrialRow) -> dict[str, Any]:
    return {
        **vars(row),
        "ruling": row.ruling and {"state": row.ruling.state, "reasons": row.ruling.reasons},
        "met": [{"fault": fault, "target": target} for fault, target in row.met],
        "replay": contents.replay(row.trial),
    }


_TEXT, _NUMBER, _COUNT = {"type": "string"}, {"type": "number"}, {"type": "integer", "minimum": 0}


def _object(texts: str = "", counts: str = "", **fields: Any) -> dict[str, Any]:
    """An object with these fields, and others that are texts or counts, by their names."""
    plain = dict.fromkeys(texts.split(), _TEXT) | dict.fromkeys(counts.split(), _COUNT)
    return {"type": "object", "required": [*plain, *fields], "properties": plain | fields}


def _list(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _maybe(schema: Any) -> dict[str, Any]:
    return {"anyOf": [{"type": "null"}, schema]}


def _words(words: Any) -> dict[str, Any]:
    return {"enum": [str(word) for word in words]}


_RATE = {"$ref": "#/$defs/rate"}
_STANDINGS = _object(counts="well bad open")
SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "A report of chaoslab",
    **_object(
        schema={"const": VERSION},
        run={"type": "object", "additionalProperties": _TEXT},
        notes=_list(_TEXT),
        verdict=_object(
            texts="said",
            counts="trials met",
            tone=_words(Tone),
            ended=_STANDINGS,
            done=_maybe(_STANDINGS),
            harmed=_maybe(_RATE),
            faults=_maybe(_object(counts="scheduled armed injected witnessed")),
        ),
        scenario=_maybe(
            _object(texts="name", counts="trials", asked=_list(_TEXT), state=_maybe(_words(Ruled)), why=_list(_TEXT))
        ),
        outcomes={"type": "object", "propertyNames": _words(Outcome), "additionalProperties": _RATE},
        basis={"type": "object", "propertyNames": _words(Basis), "additionalProperties": _COUNT},
        harm=_list(_object(counts="findings", kind=_words(FindingKind), trials=_list(_TEXT))),
        matrix=_list(
            _object(
                texts="fault target",
                counts="scheduled trials attempts",
                state=_words(CellState),
                worst=_maybe(_words(Outcome)),
                bad=_maybe(_RATE),
                mixed={"type": "boolean"},
            )
        ),
        hurt_most=_list(_TEXT),
        figures=_list(
            _object(
                texts="section name unit said",
                value=_maybe(_NUMBER),
                low=_maybe(_NUMBER),
                high=_maybe(_NUMBER),
                n=_maybe(_COUNT),
            )
        ),
        tables={
            "type": "object",
            "propertyNames": _words(ROWS),
            "additionalProperties": _maybe(_list({"type": "object"})),
        },
        left_out=_object(texts="said", counts="trials"),
        advice=_list(_object(texts="seen do replay", size=_RATE, trials=_list(_TEXT))),
        trials=_list(
            _object(
                texts="trial prompt why hint answer replay",
                counts="calls failed retries",
                outcome=_words(Outcome),
                world=_words(WorldState),
                said=_words(Said),
                basis=_words(Basis),
                standing=_words(Standing),
                ruling=_maybe(_object(state=_words(Ruled), reasons=_list(_TEXT))),
                harm=_list(_TEXT),
                evidence=_list(
                    _object(
                        texts="kind text",
                        lines=_list(_object(texts="file", line={"type": "integer", "minimum": 1})),
                    )
                ),
                seconds=_maybe({"type": "number", "minimum": 0}),
                met=_list(_object(texts="fault target")),
            )
        ),
    ),
    "$defs": {"rate": _object(counts="count total prompts", low=_NUMBER, high=_NUMBER)},
}
