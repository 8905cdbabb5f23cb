"""`debezium-inbox run`: consume."""

import faulthandler
import signal
import sys
from typing import Annotated

import typer

from consumer.cli.console import err
from consumer.engine.consumer import Consumer
from consumer.engine.handler_path import load_handler
from consumer.errors import PoisonError
from consumer.settings import load_settings
from consumer.telemetry import configure_logging


def run(
    handler: Annotated[
        str, typer.Argument(metavar="MODULE:HANDLER", help="The EventHandler subclass to run.")
    ],
    database_url: Annotated[str | None, typer.Option(help="INBOX_DATABASE_URL")] = None,
    kafka_bootstrap_servers: Annotated[
        str | None, typer.Option(help="INBOX_KAFKA_BOOTSTRAP_SERVERS")
    ] = None,
    db_schema: Annotated[str | None, typer.Option(help="INBOX_DB_SCHEMA")] = None,
    group_id: Annotated[str | None, typer.Option(help="INBOX_GROUP_ID")] = None,
    lanes: Annotated[int | None, typer.Option(help="INBOX_LANES")] = None,
    max_batch_events: Annotated[int | None, typer.Option(help="INBOX_MAX_BATCH_EVENTS")] = None,
    wait_for_topic: Annotated[
        bool | None,
        typer.Option("--wait-for-topic", help="Wait for topics that are not there yet."),
    ] = None,
    until_idle: Annotated[
        bool, typer.Option("--until-idle", help="End when all that is in the topics is applied.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Print tracebacks; they may hold event data.")
    ] = False,
) -> None:
    """Consume events with MODULE:HANDLER until SIGTERM or SIGINT; SIGUSR1 prints where it is."""
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    configure_logging(json_lines=not sys.stderr.isatty())
    settings = load_settings(
        database_url=database_url,
        kafka_bootstrap_servers=kafka_bootstrap_servers,
        db_schema=db_schema,
        group_id=group_id,
        lanes=lanes,
        max_batch_events=max_batch_events,
        wait_for_topic=wait_for_topic,
    )
    try:
        consumer = Consumer(load_handler(handler), settings)
        consumer.run_until_idle() if until_idle else consumer.run()
    except PoisonError:
        if debug:
            err.print_exception(show_locals=False)
        raise
