"""Replication slots: read them, and say which are a danger."""
