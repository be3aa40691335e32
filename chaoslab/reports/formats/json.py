"""A run's report as JSON. `SCHEMA` describes it; a change that is no addition gets a new number."""

from __future__ import annotations

import json
from typing import Any

from chaoslab.analysis.measures.intervals import Rate
from chaoslab.analysis.verdict.ledger import FindingKind
from chaoslab.analysis.verdict.standing import Standing
from chaoslab.analysis.verdict.table import Basis, Outcome, Said, WorldState
from chaoslab.record.rulings import Rulings
from chaoslab.record.rulings import RulingState as Ruled
from chaoslab.reports.contents import NAME, SHOWN, Contents
from chaoslab.reports.contents._figures import figures
from chaoslab.reports.contents._matrix import CellState
from chaoslab.reports.contents._rows import TrialRow
from chaoslab.reports.contents.headline import Tone
from chaoslab.reports.text import visible

FILE = "report.json"
VERSION = 1


def files(contents: Contents) -> dict[str, str]:
    """The file."""
    return {FILE: json.dumps(value(contents), ensure_ascii=False, indent=1, allow_nan=False) + "\n"}


def value(contents: Contents) -> dict[str, Any]:
    """The report as JSON values."""
    head = contents.headline
    return {
        "schema": VERSION,
        "run": contents.facts,
        "notes": list(contents.report.notes),
        "verdict": {
            "said": head.said,
            "tone": str(head.tone),
            "trials": head.trials,
            "judged": head.judged,
            "met": head.met,
            "correct": _rate(head.correct),
            "bad": _rate(head.bad),
            "harmed": _rate(head.harmed),
            "faults": head.delivery._asdict() if head.delivery else None,
        },
        "scenario": _scenario(contents.report.rulings),
        "outcomes": {name: _rate(found) for name, found in contents.report.success.value.by_outcome.items()},
        "basis": {str(basis): number for basis, number in contents.report.grounds.value.by_basis.items()},
        "harm": [
            {"kind": str(harm.kind), "findings": harm.findings, "trials": list(harm.trials[:SHOWN])}
            for harm in contents.harms
        ],
        "matrix": [
            {
                "fault": cell.fault,
                "target": cell.target,
                "state": str(cell.state),
                "scheduled": cell.scheduled,
                "trials": cell.trials,
                "attempts": cell.attempts,
                "worst": None if cell.worst is None else str(cell.worst),
                "bad": _rate(cell.bad),
                "mixed": cell.mixed,
            }
            for cells in contents.matrix.rows.values()
            for cell in cells
        ],
        "hurt_most": list(contents.hurt_most),
        "figures": figures(contents.report),
        "parts": [
            {
                "title": part.title,
                "lines": list(part.lines),
                "tables": [
                    {"caption": table.caption, "header": list(table.header), "rows": [list(row) for row in table.rows]}
                    for table in part.tables
                ],
            }
            for part in contents.parts
        ],
        "advice": [
            {
                "seen": one.seen,
                "do": one.do,
                "size": _rate(one.size),
                "trials": list(one.trials[:SHOWN]),
                "replay": contents.replay(one.trials[0]),
            }
            for one in contents.advice
        ],
        "trials": [_trial(contents, row) for row in contents.rows],
        "left_out": {"trials": len(contents.order) - len(contents.rows), "said": contents.more},
    }


def _rate(rate: Rate | None) -> dict[str, float] | None:
    if rate is None:
        return None
    return {"count": rate.count, "total": rate.total, "low": rate.interval.low, "high": rate.interval.high}


def _scenario(rulings: Rulings | None) -> dict[str, Any] | None:
    if rulings is None:
        return None
    return {
        "name": visible(rulings.scenario, NAME),
        "asked": [visible(text, NAME) for text in rulings.asked],
        "trials": rulings.trials,
        "state": None if rulings.state is None else str(rulings.state),
        "why": [visible(text, NAME) for text in rulings.why],
    }


def _trial(contents: Contents, row: TrialRow) -> dict[str, Any]:
    return {
        "trial": row.trial,
        "prompt": row.prompt,
        "outcome": str(row.outcome),
        "world": str(row.world),
        "said": str(row.said),
        "basis": str(row.basis),
        "certain": row.certain,
        "standing": str(row.standing),
        "why": row.why,
        "ruling": None if row.ruling is None else {"state": str(row.ruling.state), "reasons": list(row.ruling.reasons)},
        "harm": list(row.harm),
        "evidence": [
            {"kind": one.kind, "text": one.text, "lines": [vars(line) for line in one.lines]} for one in row.evidence
        ],
        "answer": row.answer,
        "seconds": row.seconds,
        "calls": row.calls,
        "failed": row.failed,
        "retries": row.retries,
        "met": [{"fault": fault, "target": target} for fault, target in row.met],
        "replay": contents.replay(row.trial),
    }


_TEXT, _NUMBER, _COUNT = {"type": "string"}, {"type": "number"}, {"type": "integer", "minimum": 0}


def _object(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(fields), "properties": fields}


def _list(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _maybe(schema: Any) -> dict[str, Any]:
    return {"anyOf": [{"type": "null"}, schema]}


def _words(words: Any) -> dict[str, Any]:
    return {"enum": [str(word) for word in words]}


_RATE = {"$ref": "#/$defs/rate"}
SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "A report of chaoslab",
    **_object(
        schema={"const": VERSION},
        run={"type": "object", "additionalProperties": _TEXT},
        notes=_list(_TEXT),
        verdict=_object(
            said=_TEXT,
            tone=_words(Tone),
            trials=_COUNT,
            judged=_COUNT,
            met=_COUNT,
            correct=_maybe(_RATE),
            bad=_maybe(_RATE),
            harmed=_maybe(_RATE),
            faults=_maybe(_object(scheduled=_COUNT, armed=_COUNT, injected=_COUNT, witnessed=_COUNT)),
        ),
        scenario=_maybe(
            _object(name=_TEXT, asked=_list(_TEXT), trials=_COUNT, state=_maybe(_words(Ruled)), why=_list(_TEXT))
        ),
        outcomes={"type": "object", "propertyNames": _words(Outcome), "additionalProperties": _RATE},
        basis={"type": "object", "propertyNames": _words(Basis), "additionalProperties": _COUNT},
        harm=_list(_object(kind=_words(FindingKind), findings=_COUNT, trials=_list(_TEXT))),
        matrix=_list(
            _object(
                fault=_TEXT,
                target=_TEXT,
                state=_words(CellState),
                scheduled=_COUNT,
                trials=_COUNT,
                attempts=_COUNT,
                worst=_maybe(_words(Outcome)),
                bad=_maybe(_RATE),
                mixed={"type": "boolean"},
            )
        ),
        hurt_most=_list(_TEXT),
        figures=_object(
            reliability=_maybe({"type": "object"}),
            recovery={"type": "object"},
            amplification=_list({"type": "object"}),
            usage=_maybe({"type": "object"}),
            cost_of_chaos=_maybe({"type": "object"}),
        ),
        parts=_list(
            _object(
                title=_TEXT,
                lines=_list(_TEXT),
                tables=_list(_object(caption=_TEXT, header=_list(_TEXT), rows=_list(_list(_TEXT)))),
            )
        ),
        left_out=_object(trials=_COUNT, said=_TEXT),
        advice=_list(_object(seen=_TEXT, do=_TEXT, size=_RATE, trials=_list(_TEXT), replay=_TEXT)),
        trials=_list(
            _object(
                trial=_TEXT,
                prompt=_TEXT,
                outcome=_words(Outcome),
                world=_words(WorldState),
                said=_words(Said),
                basis=_words(Basis),
                certain={"type": "boolean"},
                standing=_words(Standing),
                why=_TEXT,
                ruling=_maybe(_object(state=_words(Ruled), reasons=_list(_TEXT))),
                harm=_list(_TEXT),
                evidence=_list(
                    _object(
                        kind=_words(FindingKind),
                        text=_TEXT,
                        lines=_list(_object(file=_TEXT, line={"type": "integer", "minimum": 1})),
                    )
                ),
                answer=_TEXT,
                seconds=_maybe({"type": "number", "minimum": 0}),
                calls=_COUNT,
                failed=_COUNT,
                retries=_COUNT,
                met=_list(_object(fault=_TEXT, target=_TEXT)),
                replay=_TEXT,
            )
        ),
    ),
    "$defs": {"rate": _object(count=_COUNT, total=_COUNT, low=_NUMBER, high=_NUMBER)},
}
