"""Online preference learning: show something, take the reaction, do better next time."""

__version__ = "0.1.0"
