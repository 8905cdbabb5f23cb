"""Kafka, through kafka-python: the only package that imports it."""

from consumer.kafka.admin import broker_answers, longest_redelivery_ms
from consumer.kafka.broker import KafkaBroker

__all__ = ["KafkaBroker", "broker_answers", "longest_redelivery_ms"]
