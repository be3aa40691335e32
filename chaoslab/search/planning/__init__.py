"""The next experiments, from what past ones showed: chances, safe doses, risk and proposals. All of it is pure: rows
in, rows out. Five groups of plug-ins, each a class here or a package's entry point `chaoslab.search.planning.<group>`:
`knowledge`, `risk_factors`, `enhancements`, `experiments` and `outcomes`."""
