"""`python -m chaoslab` is `chaoslab`."""

import sys

from chaoslab.cli import main

sys.exit(main())
