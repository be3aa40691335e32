"""The base of all packages, without knowledge of the lab: time, chance, names, values, files, the command line."""
