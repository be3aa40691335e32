"""The version of chaoslab, for the rooms that import nothing of the package itself, which states it too."""

__version__ = "0.1.0"
