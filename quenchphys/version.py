"""The version of quenchphys."""

__version__ = "0.1.0"
