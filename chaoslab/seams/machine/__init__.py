"""The agent's own machine: the files of its folder, and the commands that it runs."""
