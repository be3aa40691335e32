"""A run's report as one HTML file: it loads nothing, and shows whatever a tool replied as text. A timeline is drawn
when it is asked for, from JSON in the page, so that 1,000 trials stay below 5 MB. The script makes text nodes alone,
and a policy in the page lets nothing else run."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files as resources
from typing import TYPE_CHECKING, Any

from chaoslab.analysis.verdict.standing import Standing
from chaoslab.analysis.verdict.table import Outcome
from chaoslab.reports.contents import EXAMPLES, Contents
from chaoslab.reports.contents._matrix import CellState
from chaoslab.reports.contents.outcomes import color, glyph, ink_on, word
from chaoslab.reports.formats.html.timelines import embedded, stories
from chaoslab.reports.page import count, percent, percents, share
from chaoslab.reports.svg import pictures

if TYPE_CHECKING:
    from jinja2 import Environment

FILE = "report.html"


def files(contents: Contents) -> dict[str, str]:
    """The page. Raises ModuleNotFoundError: Jinja is not installed."""
    script = text("elements.js") + text("script.js")
    made = page(
        "page.html", it=contents, script=script, script_hash=_digest(script), data=embedded(stories(contents)),
        outcomes=[outcome for outcome in Outcome if str(outcome) in contents.report.success.value.by_outcome],
        counts=contents.report.success.value.by_outcome,
        places=sorted({place for row in contents.rows for place in row.met}), State=CellState,
        pictures=pictures(contents.report), examples=EXAMPLES, Standing=Standing, word=word, glyph=glyph, share=share,
        count=count, percents=percents, percent=percent,
    )  # fmt: skip
    return {FILE: made}


def page(template: str, **given: Any) -> str:
    """The page of a template of this folder, in the style of all. Raises ModuleNotFoundError: Jinja is not
    installed."""
    from jinja2 import Environment

    made = _templates(Environment).get_template(template)
    style = styles()
    return made.render(style=style, style_hash=_digest(style), **given)


def text(name: str) -> str:
    """The text of a file of this folder."""
    return resources(__name__).joinpath(name).read_text(encoding="utf-8")


@cache
def styles(*more: str) -> str:
    """The style of all pages, and that of further files of this folder."""
    texts = [text(name) for name in ("style.css", *more)]
    # the colours of the outcomes as style rules
    rules = [
        f".o-{outcome}{{--ground:{color(outcome)};--on:{ink_on(color(outcome))};fill:{color(outcome)}}}"
        for outcome in Outcome
    ]
    return texts[0] + ("\n" + "\n".join(rules) + "\n") + "".join(texts[1:])


@cache
def _templates(kind: type[Environment]) -> Environment:
    """The templates of this folder. A template is compiled once in a process, which takes 40 ms."""
    from jinja2 import PackageLoader, StrictUndefined

    loader = PackageLoader(__name__, ".")
    return kind(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def _digest(text: str) -> str:
    """The text's source expression in a Content-Security-Policy."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
