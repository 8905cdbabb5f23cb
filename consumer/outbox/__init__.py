"""Write outbox rows in the caller's transaction."""
