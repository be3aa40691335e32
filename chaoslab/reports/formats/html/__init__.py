"""A run's report as one HTML file: it loads nothing, and shows whatever a tool replied as text. A timeline is drawn
when it is asked for, from JSON in the page, so that 1,000 trials stay below 5 MB. The script makes text nodes alone,
and a policy in the page lets nothing else run."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files as resources
from typing import TYPE_CHECKING, Any

from chaoslab.analysis.verdict.guard import run_guarded
from chaoslab.analysis.verdict.standing import Standing
from chaoslab.analysis.verdict.table import Outcome
from chaoslab.reports._svg import draw_recovery_curve
from chaoslab.reports.contents import EXAMPLES, Contents
from chaoslab.reports.contents._matrix import LEGEND, CellState
from chaoslab.reports.contents.outcomes import choose_text_color, outcome_color, outcome_glyph, outcome_word
from chaoslab.reports.formats.html.timelines import build_timelines, escape_json_for_html
from chaoslab.reports.page import format_count, format_interval, format_percent, format_rate_in_percent

if TYPE_CHECKING:
    from jinja2 import Environment

FILE = "report.html"


def files(contents: Contents) -> dict[str, str]:
    """The page. Raises ModuleNotFoundError: Jinja is not installed."""
    script = read_asset("elements.js") + read_asset("script.js")
    rendered = render_page(
        "page.html",
        it=contents,
        script=script,
        # The page's policy lets only a script of this digest run.
        script_hash=_compute_csp_hash(script),
        data=escape_json_for_html(build_timelines(contents)),
        outcomes=[outcome for outcome in Outcome if str(outcome) in contents.report.success.value.by_outcome],
        counts=contents.report.success.value.by_outcome,
        places=sorted({place for row in contents.rows for place in row.met}),
        State=CellState,
        legend=LEGEND,
        # Where the measure failed, its section says why.
        recovery=run_guarded(lambda: draw_recovery_curve(contents.report), lambda _: None),
        examples=EXAMPLES,
        Standing=Standing,
        word=outcome_word,
        glyph=outcome_glyph,
        share=format_rate_in_percent,
        count=format_count,
        percents=format_interval,
        percent=format_percent,
    )
    return {FILE: rendered}


def render_page(template: str, **context: Any) -> str:
    """The page of a template of this folder, in the style of all. Raises ModuleNotFoundError: Jinja is not
    installed."""
    from jinja2 import Environment

    template_page = _make_template_environment(Environment).get_template(template)
    style = build_styles()
    return template_page.render(style=style, style_hash=_compute_csp_hash(style), **context)


def read_asset(name: str) -> str:
    """The text of a file of this folder."""
    return resources(__name__).joinpath(name).read_text(encoding="utf-8")


@cache
def build_styles(*extra_files: str) -> str:
    """The style of all pages, and that of further files of this folder."""
    texts = [read_asset(name) for name in ("style.css", *extra_files)]
    # the colours of the outcomes as style rules
    rules = [
        f".o-{outcome}{{--ground:{outcome_color(outcome)};--on:{choose_text_color(outcome_color(outcome))};fill:{outcome_color(outcome)}}}"
        for outcome in Outcome
    ]
    return texts[0] + ("\n" + "\n".join(rules) + "\n") + "".join(texts[1:])


@cache
def _make_template_environment(kind: type[Environment]) -> Environment:
    """The templates of this folder. A template is compiled once in a process, which takes 40 ms."""
    from jinja2 import PackageLoader, StrictUndefined

    loader = PackageLoader(__name__, ".")
    # Strict: a misspelt name in a template is an error, and no empty text.
    return kind(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def _compute_csp_hash(text: str) -> str:
    """The text's source expression in a Content-Security-Policy."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
