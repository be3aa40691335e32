"""The next experiments, from what past ones showed: chances, safe doses, risk and proposals. All of it is pure: rows
in, rows out."""
