"""memd: a per-user daemon that keeps the long-lived memory of coding agents."""

__version__ = "0.1.0"
