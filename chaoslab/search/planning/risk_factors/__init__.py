"""The factors of a risk, one class a file: `value(asked)` from 0 to 1, `weight` in log-odds, and `base`, the value that
changes nothing."""
