"""The base of all packages, without knowledge of the lab: time, chance, names, values, files, the command line.

Other rooms use `alike`, `boundary`, `child_group`, `clock`, `commandline`, `dice`, `differences`, `durations`,
`extras`, `files`, `foreign`, `former`, `garbage`, `identity`, `interrupts`, `json_text`, `jsonable`, `levers`,
`lifeline`, `parsers`, `phrases`, `prometheus`, `registry`, `secrets`, `shapes`, `snapshots`, `terminal`, `user_line`,
`values`, `version`, `web_pages`.
"""
