"""The version of chaoslab, for the rooms that import nothing of the package itself."""

__version__ = "0.1.0"
