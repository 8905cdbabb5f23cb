"""`debezium-inbox demo`: the whole chain on this machine, and the books closed at the end."""

import shlex
import shutil
from pathlib import Path
from typing import Annotated, Self

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from consumer.cli.console import err, out
from consumer.cli.progress import StackProgress
from consumer.cli.slots import verdict_table
from consumer.demo import story
from consumer.demo.books import Books
from consumer.demo.story import Outcome
from consumer.local.stack import Stack
from consumer.resources import examples_package

TRADING_S = 8.0  # the shop's pace is chosen so that trading takes about this long


class DemoProgress(StackProgress):
    """The stack's progress, then a bar for each consumer."""

    def __init__(self) -> None:
        super().__init__()
        self._books = Progress(
            TextColumn("{task.description:>8}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("events applied"),
            console=err,
        )
        self._tasks = {
            name: self._books.add_task(name, total=None) for name in ("stock", "loyalty")
        }

    def went(self, books: Books, shop_done: bool) -> None:
        """Move the consumers' bars; the total is known when the shop is done."""
        if self._bar.live.is_started:
            self._bar.stop()
            self._books.start()
        for name, account in books.accounts.items():
            total = account.published if shop_done else None
            self._books.update(self._tasks[name], completed=account.applied, total=total)

    def said(self, text: str) -> None:
        """Print a line above the bars."""
        current = self._bar if self._bar.live.is_started else self._books
        current.console.print(f"  {text}", highlight=False, markup=False)

    def __enter__(self) -> Self:
        super().__enter__()
        return self

    def __exit__(self, *reason: object) -> None:
        self._books.stop()
        super().__exit__(*reason)


def demo(
    orders: Annotated[int, typer.Option(min=10, help="How many orders the shop writes.")] = 1000,
    crashes: Annotated[int, typer.Option(min=0, help="How often a consumer is killed.")] = 1,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the stack up, and say how to play on.")
    ] = False,
) -> None:
    """Run orders from Postgres through Debezium and Kafka into a second database, across crashes.

    Brings up Postgres, Kafka and Connect in a folder of their own on free ports, and takes them down
    again. Exits with 1 when the books do not balance.
    """
    if crashes >= orders:
        raise typer.BadParameter(f"--crashes {crashes}: expected fewer than the {orders} orders")
    folder = story.new_folder()
    try:
        with DemoProgress() as progress:
            outcome = story.tell_the_story(
                folder,
                orders=orders,
                per_second=orders / TRADING_S,
                crashes=crashes,
                keep=keep,
                teller=progress,
            )
    except Exception:
        _point_to_logs(folder)
        raise
    _tell(outcome)
    if keep:
        _play_on(Stack(folder / "stack"))
    elif outcome.balanced:
        shutil.rmtree(folder)
    else:
        _point_to_logs(folder)
    raise typer.Exit(0 if outcome.balanced else 1)


def _point_to_logs(folder: Path) -> None:
    err.print(f"what each process said is in {folder} and below", soft_wrap=True, markup=False)


def _tell(outcome: Outcome) -> None:
    out.print(_books_table(outcome))
    out.print(verdict_table(outcome.slots))
    out.print(f"prune --older-than 1m  refused: {outcome.refusal}", highlight=False)
    rows = ", ".join(f"{name} {count}" for name, count in outcome.pruned.rows.items())
    out.print(f"prune --older-than 30d deleted: {rows} (no row is that old yet)", highlight=False)
    verdict = (
        "[green]the books balance[/]" if outcome.balanced else "[red]the books do NOT balance[/]"
    )
    out.print(verdict)


def _books_table(outcome: Outcome) -> Table:
    books = outcome.books
    table = Table("", *books.accounts, title="the books")
    for row in ("published", "applied", "lost", "twice", "out_of_order"):
        name = {"twice": "applied twice", "out_of_order": "out of order"}.get(row, row)
        table.add_row(name, *(str(getattr(account, row)) for account in books.accounts.values()))
    table.caption = (
        f"orders written {books.orders}, consumers killed {outcome.crashes}, duplicates skipped "
        f"{outcome.redelivered}\npieces reserved: {books.reserved_by_shop} by the shop's tables, "
        f"{books.reserved_in_stock} by the warehouse's"
    )
    return table


def _play_on(stack: Stack) -> None:
    folder = shlex.quote(str(stack.folder))
    out.print(
        f"\nThe stack is still up. Play on:\n"
        f'  eval "$(debezium-inbox local env --folder {folder})"\n'
        f"  debezium-inbox slots check outbox\n"
        f"  python -m {examples_package()}.orders.shop --orders 100\n"
        f"  debezium-inbox run {examples_package()}.orders.warehouse:Warehouse\n"
        f"and take it down with:\n"
        f"  debezium-inbox local down --delete --folder {folder}",
        highlight=False,
        soft_wrap=True,
    )
