"""The targets of the agent's own machine, in a trial with a copy of a folder (`files=`): calls that touch a file in it,
and commands."""

READ, WRITE, DELETE, MOVE = "files.read", "files.write", "files.delete", "files.move"
COMMANDS = "commands"
TARGETS = (READ, WRITE, DELETE, MOVE, COMMANDS)
FIRST, LATEST = "first", "present"
"""The version of a file that is read: as it was when the trial began, or changed since."""
