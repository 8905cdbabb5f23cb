"""The demo's story: stack up, schema, connector, shop, consumers, crashes, books, slot lag, prune."""

import json
import random
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from consumer.connect import apply as connector
from consumer.connect.client import ConnectClient
from consumer.connect.file import read_connector_file
from consumer.demo import services
from consumer.demo.books import Books, close_books
from consumer.demo.services import Service
from consumer.errors import InboxError, PruneRefusedError
from consumer.local.process import is_root
from consumer.local.stack import Progress, Stack
from consumer.prune import Pruned, prune
from consumer.resources import data_folder
from consumer.slots.assess import Thresholds, Verdict, assess
from consumer.slots.facts import read_slots, slot_holder
from consumer.store import migrations
from consumer.store.connecting import connect
from consumer.store.migrations import Target

SCHEMA = "public"
STALLED_AFTER_S = 60.0
REFUSED_WINDOW = timedelta(minutes=1)
KEPT_WINDOW = timedelta(days=30)
_LOOK_EVERY_S = 0.2


class Teller(Progress, Protocol):
    """Who is told how the demo goes."""

    def went(self, books: Books, shop_done: bool) -> None:  # a fact, not a switch
        """The books as they are now."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the demo found at its end."""

    books: Books
    crashes: int
    redelivered: int
    """Events that Kafka delivered again and that did not take effect again."""
    slots: list[Verdict]
    refusal: str
    """Why a prune with too short a window was refused."""
    pruned: Pruned

    @property
    def balanced(self) -> bool:
        """Whether the demo shows what it should."""
        return self.books.balanced


@dataclass(frozen=True, slots=True)
class Play:
    """A running demo, for a person to play on with."""

    stack: Stack
    settings: Mapping[str, str]

    @property
    def shop_url(self) -> str:
        """The database with the outbox."""
        return self.settings["INBOX_SOURCE_DATABASE_URL"]

    @property
    def warehouse_url(self) -> str:
        """The database with the inbox."""
        return self.settings["INBOX_DATABASE_URL"]


def new_folder() -> Path:
    """A folder of the demo's own."""
    folder = Path(tempfile.mkdtemp(prefix="debezium-inbox-demo-"))
    folder.chmod(0o711 if is_root() else 0o700)  # Postgres, which refuses root, must get in
    return folder


def tell_the_story(
    folder: Path, *, orders: int, per_second: float, crashes: int, keep: bool, teller: Teller
) -> Outcome:
    """Run the whole demo in `folder`; the stack is down again at the end unless it is kept."""
    stack = Stack(folder / "stack", progress=teller)
    try:
        stack.up()
        play = Play(stack, stack.environment())
        _prepare(play, teller)
        outcome = _trade(play, folder, orders, per_second, crashes, teller)
    except BaseException:
        stack.down()
        raise
    if not keep:
        stack.down()
    return outcome


def _prepare(play: Play, teller: Teller) -> None:
    """Schemas of inbox and outbox, the example's own tables, and the connector."""
    examples = data_folder("examples") / "orders"
    with connect(play.shop_url, autocommit=True) as connection:
        migrations.apply(connection, Target.OUTBOX, SCHEMA)
        connection.execute((examples / "shop.sql").read_bytes())
    with connect(play.warehouse_url, autocommit=True) as connection:
        migrations.apply(connection, Target.INBOX, SCHEMA)
        connection.execute((examples / "warehouse.sql").read_bytes())
    teller.said("schema applied to both databases")
    file = read_connector_file(data_folder("connectors") / "outbox.json")
    with ConnectClient(play.settings["INBOX_CONNECT_URL"]) as client:
        connector.apply(client, file, slot_holder=lambda: slot_holder(play.shop_url, "outbox"))
    teller.said("connector deployed, its task runs and holds the slot")


def _trade(
    play: Play, folder: Path, orders: int, per_second: float, crashes: int, teller: Teller
) -> Outcome:
    shop = services.shop(orders, per_second, play.settings, folder)
    consumers = services.consumers(play.settings, folder)
    points = _crash_points(orders, crashes)
    try:
        shop.start()
        for consumer in consumers.values():
            consumer.start()
        books = _follow(play, shop, consumers, points, teller)
    finally:
        for service in (shop, *consumers.values()):
            service.stop()
    return _close(play, books, crashes - len(points), [each.log for each in consumers.values()])


def _crash_points(orders: int, crashes: int) -> list[int]:
    """After how many applied orders a consumer is killed: in the middle, or at random places."""
    if crashes == 1:
        return [orders // 2]
    return sorted(random.sample(range(1, max(orders, crashes + 1)), crashes))


def _follow(
    play: Play,
    shop: Service,
    consumers: Mapping[str, Service],
    crash_points: list[int],
    teller: Teller,
) -> Books:
    """Watch the books until they close or nothing moves, and kill consumers on the way."""
    best, moved_at = -1, time.monotonic()
    while True:
        shop_status = shop.exit_status()
        books = close_books(play.shop_url, play.warehouse_url, SCHEMA)
        teller.went(books, shop_status is not None)
        applied = sum(account.applied for account in books.accounts.values())
        if applied > best:
            best, moved_at = applied, time.monotonic()
        if crash_points and books.accounts["stock"].applied >= crash_points[0]:
            del crash_points[0]
            _crash(consumers, teller)
        done = shop_status == 0 and not crash_points and books.balanced
        if done:
            return books
        if time.monotonic() - moved_at > STALLED_AFTER_S:
            for consumer in consumers.values():
                consumer.tell_where_it_is()
            return books
        _check_services(shop, consumers)
        time.sleep(_LOOK_EVERY_S)


def _crash(consumers: Mapping[str, Service], teller: Teller) -> None:
    name = random.choice(list(consumers))  # noqa: S311  # a crash, no secret
    consumers[name].kill()
    teller.said(f"killed the consumer {name} with SIGKILL, and started it again")
    consumers[name].start()


def _check_services(shop: Service, consumers: Mapping[str, Service]) -> None:
    for service in (shop, *consumers.values()):
        if service.exit_status() not in {None, 0}:
            tail = service.log.read_text().splitlines()[-5:]
            raise InboxError("\n  ".join([f"{service.log.stem} ended by itself:", *tail]))


def _close(play: Play, books: Books, crashes: int, logs: list[Path]) -> Outcome:
    refusal = ""
    try:
        _prune(play, REFUSED_WINDOW)
    except PruneRefusedError as error:
        refusal = str(error)
    return Outcome(
        books=books,
        crashes=crashes,
        redelivered=sum(map(_redelivered, logs)),
        slots=assess(read_slots(play.shop_url), ["outbox"], Thresholds()),
        refusal=refusal,
        pruned=_prune(play, KEPT_WINDOW),
    )


def _prune(play: Play, window: timedelta) -> Pruned:
    return prune(
        play.warehouse_url,
        schema=SCHEMA,
        bootstrap_servers=play.settings["INBOX_KAFKA_BOOTSTRAP_SERVERS"],
        older_than=window,
    )


def _redelivered(log: Path) -> int:
    """What a consumer's log says of events that came again."""
    counted = ("redelivery_skipped", "duplicates_by_position", "duplicates_by_id")
    total = 0
    for line in log.read_text().splitlines():
        if line.startswith("{"):
            said = json.loads(line)
            total += sum(int(said.get(name, 0)) for name in counted)
    return total
