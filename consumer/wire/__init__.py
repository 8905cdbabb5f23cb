"""A record's bytes become an event."""
