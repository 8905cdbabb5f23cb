"""Kafka Connect: deploy connector JSON and know that it runs."""
