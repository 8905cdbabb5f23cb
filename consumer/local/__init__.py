"""The real stack on this machine without Docker: Postgres, Kafka and Connect, from pip alone."""
