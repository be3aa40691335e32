"""What everything stands on and which knows nothing of the lab: time, chance, names, values, files, the command line."""
