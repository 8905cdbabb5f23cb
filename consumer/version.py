"""The version of the distribution and the command."""

__version__ = "0.1.0"
