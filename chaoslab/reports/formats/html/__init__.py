"""A run's report as one HTML file: it loads nothing, and shows whatever a tool replied as text."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files as resources

from chaoslab.analysis.judge import Outcome
from chaoslab.reports.contents import Contents
from chaoslab.reports.contents.matrix import State
from chaoslab.reports.contents.outcomes import color, glyph, ink_on, is_bad, word
from chaoslab.reports.formats.html.timelines import embedded, stories
from chaoslab.reports.page import percent, percents, share

FILE = "report.html"
ROWS_MAX = 3000
"""The most trials in the table. The worst come first."""
EXAMPLES = 3


def files(contents: Contents) -> dict[str, str]:
    """The page.

    Raises:
        ModuleNotFoundError: Jinja is not installed.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    own = resources(__name__)
    style = own.joinpath("style.css").read_text(encoding="utf-8") + _looks()
    script = own.joinpath("script.js").read_text(encoding="utf-8")
    loader = PackageLoader(__name__, ".")
    world = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    text = world.get_template("page.html").render(
        it=contents,
        style=style,
        script=script,
        style_hash=_digest(style),
        script_hash=_digest(script),
        data=embedded(stories(contents)),
        rows=contents.rows[:ROWS_MAX],
        left_out=max(0, len(contents.rows) - ROWS_MAX),
        outcomes=[outcome for outcome in Outcome if str(outcome) in contents.report.success.value.by_outcome],
        counts=contents.report.success.value.by_outcome,
        places=sorted({place for row in contents.rows for place in row.met}),
        State=State,
        examples=EXAMPLES,
        bad=lambda outcome: is_bad(outcome, judgeable=contents.report.judgeable),
        word=word,
        glyph=glyph,
        share=share,
        percents=percents,
        percent=percent,
    )
    return {FILE: text}


def _looks() -> str:
    """The colours of the outcomes as style rules."""
    rules = [
        f".o-{outcome}{{--ground:{color(outcome)};--on:{ink_on(color(outcome))};fill:{color(outcome)}}}"
        for outcome in Outcome
    ]
    return "\n" + "\n".join(rules) + "\n"


def _digest(text: str) -> str:
    """The text's source expression in a Content-Security-Policy."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
