"""Words that chaoslab once had, and what is said now."""

_DECIDES = "words decide nothing any more: state says, facts, effects or judge"
COMMANDS = {"label": _DECIDES}
OPTIONS = {
    "--log-as": "leave it out, a log is lines of text; --keep failed makes it small",
    "--count-words": _DECIDES,
    **dict.fromkeys(("--against-labels", "--certain-above"), "leave it out, the judge's word counts as it is"),
}
KEYS = {"count_words": _DECIDES}
ASSERTIONS = {"admits_failure": "say answer_matches, or says with accept: [degraded]"}
