"""The groups, words and looks of outcomes, for every format of a report."""

from chaoslab.analysis.verdict.table import Outcome
from chaoslab.reports.charts._palette import OUTCOMES
from chaoslab.reports.trials import WORST_FIRST

SEVERITY = (*WORST_FIRST, *(outcome for outcome in reversed(Outcome) if outcome not in WORST_FIRST))
"""Every outcome, worst first."""
GLYPHS = {
    "o": "●", "s": "■", "h": "⬢", "p": "⬟", "X": "✖", "v": "▼", "*": "★", "d": "⬥", "D": "◆", "P": "✚", "^": "▲",
}  # fmt: skip
"""The shapes of the charts as characters."""
LIGHT, DARK = "#ffffff", "#000000"


def outcome_word(outcome: Outcome) -> str:
    return str(outcome).replace("_", " ")


def outcome_color(outcome: Outcome) -> str:
    """The colour of the outcome in all charts, as in "#009E73"."""
    return OUTCOMES[str(outcome)].color


def outcome_glyph(outcome: Outcome) -> str:
    """The shape of the outcome in all charts, as a character."""
    return GLYPHS.get(OUTCOMES[str(outcome)].marker, "●")


def choose_text_color(ground: str) -> str:
    """Black or white, whichever is easier to read on the colour. The contrast is at least 4.58 : 1."""
    return max((LIGHT, DARK), key=lambda ink: measure_contrast(ink, ground))


def measure_contrast(first: str, second: str) -> float:
    """The contrast of two colours by WCAG 2.2, from 1 to 21."""
    darker, lighter = sorted((_luminance(first), _luminance(second)))
    # 0.05 for the light that a screen reflects, as WCAG has it.
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(color: str) -> float:
    channels = [int(color[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    red, green, blue = (
        # The curve of sRGB.
        channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4
        for channel in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
