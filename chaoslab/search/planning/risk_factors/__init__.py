"""The factors of a risk, each a class: `value(asked)` from 0 to 1, `weight` in log-odds, and `base`, the value that
changes nothing."""

FAMILIES = ("own",)
