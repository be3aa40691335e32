"""A run's report as JSON. `SCHEMA` describes it; a change that is no addition gets a new number."""

import json
from typing import Any

from chaoslab.analysis.measures.intervals import Rate
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.guard import run_guarded
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
from chaoslab.reports.text import escape_and_shorten

FILE = "report.json"
VERSION = 3


def files(contents: Contents) -> dict[str, str]:
    """The file."""
    # An NaN would make a file that no strict parser takes.
    spelt = json.dumps(
        build_report_json(contents), ensure_ascii=False, indent=1, allow_nan=False, default=_object_to_fields
    )
    return {FILE: spelt + "\n"}


def build_report_json(contents: Contents) -> dict[str, Any]:
    """The report as JSON values, but for what `_object_to_fields` makes one of."""
    head, report = contents.headline, contents.report
    return {
        "schema": VERSION,
        "run": contents.run_facts,
        "notes": report.notes,
        "verdict": {
            **{name: field_value for name, field_value in vars(head).items() if name != "delivery"},
            "faults": head.delivery._asdict() if head.delivery else None,
        },
        "scenario": _scenario_data(report.rulings),
        "outcomes": report.success.value.by_outcome,
        "basis": report.grounds.value.by_basis,
        "harm": [
            # As many as are shown one by one.
            {"kind": harm.kind, "findings": harm.findings, "trials": harm.trials[:SHOWN]}
            for harm in contents.harms
        ],
        "matrix": [vars(cell) for cells in contents.matrix.rows.values() for cell in cells],
        "hurt_most": contents.most_harmful_faults,
        "figures": contents.all_key_figures,
        # Each alone: a measure that failed leaves null, and the figures say why.
        "tables": {name: _list_rows_or_none(rows, report) for name, rows in ROWS.items()},
        "advice": [
            {
                **{name: getattr(item, name) for name in ("seen", "do", "size")},
                "trials": item.trials[:SHOWN],
                "replay": contents.build_replay_command(item.trials[0]),
            }
            for item in contents.advice
        ],
        "trials": [_trial_data(contents, row) for row in contents.rows],
        "left_out": {
            "trials": len(contents.trials_worst_first) - len(contents.rows),
            "said": contents.hidden_trials_note,
        },
    }


def _list_rows_or_none(rows: Any, report: RunReport) -> list[Any] | None:
    return run_guarded(lambda: [*rows(report)], lambda _: None)


def _object_to_fields(source: Any) -> dict[str, Any]:
    """A rate with the ends of its interval; of another dataclass its fields."""
    return (
        {"count": source.count, "total": source.total, "prompts": source.prompts, **vars(source.interval)}
        if isinstance(source, Rate)
        else vars(source)
    )


def _scenario_data(rulings: Rulings | None) -> dict[str, Any] | None:
    if rulings is None:
        return None
    return {
        "name": escape_and_shorten(rulings.scenario, NAME),
        "asked": [escape_and_shorten(text, NAME) for text in rulings.asked],
        "trials": rulings.trials,
        "state": rulings.final_state,
        "why": [escape_and_shorten(text, NAME) for text in rulings.why],
    }


def _trial_data(contents: Contents, row: TrialRow) -> dict[str, Any]:
    return {
        **vars(row),
        "ruling": row.ruling and {"state": row.ruling.state, "reasons": row.ruling.reasons},
        "met": [{"fault": fault, "target": target} for fault, target in row.met],
        "replay": contents.build_replay_command(row.trial),
    }


_TEXT, _NUMBER, _COUNT = {"type": "string"}, {"type": "number"}, {"type": "integer", "minimum": 0}


def _object_schema(texts: str = "", counts: str = "", **fields: Any) -> dict[str, Any]:
    """An object with these fields, and others that are texts or counts, by their names."""
    plain = dict.fromkeys(texts.split(), _TEXT) | dict.fromkeys(counts.split(), _COUNT)
    return {"type": "object", "required": [*plain, *fields], "properties": plain | fields}


def _list_schema(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _optional_schema(schema: Any) -> dict[str, Any]:
    return {"anyOf": [{"type": "null"}, schema]}


def _enum_schema(members: Any) -> dict[str, Any]:
    return {"enum": [str(member) for member in members]}


_RATE = {"$ref": "#/$defs/rate"}
_STANDINGS = _object_schema(counts="well bad open")
SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "A report of chaoslab",
    **_object_schema(
        schema={"const": VERSION},
        run={"type": "object", "additionalProperties": _TEXT},
        notes=_list_schema(_TEXT),
        verdict=_object_schema(
            texts="said",
            counts="trials met",
            tone=_enum_schema(Tone),
            ended=_STANDINGS,
            done=_optional_schema(_STANDINGS),
            harmed=_optional_schema(_RATE),
            faults=_optional_schema(_object_schema(counts="scheduled armed injected witnessed")),
        ),
        scenario=_optional_schema(
            _object_schema(
                texts="name",
                counts="trials",
                asked=_list_schema(_TEXT),
                state=_optional_schema(_enum_schema(Ruled)),
                why=_list_schema(_TEXT),
            )
        ),
        outcomes={"type": "object", "propertyNames": _enum_schema(Outcome), "additionalProperties": _RATE},
        basis={"type": "object", "propertyNames": _enum_schema(Basis), "additionalProperties": _COUNT},
        harm=_list_schema(
            _object_schema(counts="findings", kind=_enum_schema(FindingKind), trials=_list_schema(_TEXT))
        ),
        matrix=_list_schema(
            _object_schema(
                texts="fault target",
                counts="scheduled trials attempts",
                state=_enum_schema(CellState),
                worst=_optional_schema(_enum_schema(Outcome)),
                bad=_optional_schema(_RATE),
                mixed={"type": "boolean"},
            )
        ),
        hurt_most=_list_schema(_TEXT),
        figures=_list_schema(
            _object_schema(
                texts="section name unit said",
                value=_optional_schema(_NUMBER),
                low=_optional_schema(_NUMBER),
                high=_optional_schema(_NUMBER),
                n=_optional_schema(_COUNT),
            )
        ),
        tables={
            "type": "object",
            "propertyNames": _enum_schema(ROWS),
            "additionalProperties": _optional_schema(_list_schema({"type": "object"})),
        },
        left_out=_object_schema(texts="said", counts="trials"),
        advice=_list_schema(_object_schema(texts="seen do replay", size=_RATE, trials=_list_schema(_TEXT))),
        trials=_list_schema(
            _object_schema(
                texts="trial prompt why hint answer replay",
                counts="calls failed retries",
                outcome=_enum_schema(Outcome),
                world=_enum_schema(WorldState),
                said=_enum_schema(Said),
                basis=_enum_schema(Basis),
                standing=_enum_schema(Standing),
                ruling=_optional_schema(_object_schema(state=_enum_schema(Ruled), reasons=_list_schema(_TEXT))),
                harm=_list_schema(_TEXT),
                evidence=_list_schema(
                    _object_schema(
                        texts="kind text",
                        lines=_list_schema(_object_schema(texts="file", line={"type": "integer", "minimum": 1})),
                    )
                ),
                seconds=_optional_schema({"type": "number", "minimum": 0}),
                met=_list_schema(_object_schema(texts="fault target")),
            )
        ),
    ),
    "$defs": {"rate": _object_schema(counts="count total prompts", low=_NUMBER, high=_NUMBER)},
}
