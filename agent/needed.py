"""To be imported before the other modules of the agent, most of which cannot be without what it needs: then that is said in a line."""

import sys

from chaoslab.base import extras

try:
    extras.check("python -m agent", "agent")
except extras.Incomplete as error:
    print(error, file=sys.stderr)
    sys.exit(2)
