"""`python -m consumer` is the command `debezium-inbox`."""

from consumer.cli import main

main()
