"""Progress for people while the local stack comes up."""

from typing import Self

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from consumer.cli.console import err


class StackProgress:
    """A bar while files are fetched, a line for everything else; both on stderr."""

    def __init__(self) -> None:
        self._bar = Progress(
            TextColumn("fetching Kafka, Connect and Debezium"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            console=err,
        )
        self._task = self._bar.add_task("fetch", total=None, visible=False)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def fetched(self, done: int, total: int) -> None:
        """Move the bar."""
        self._bar.update(self._task, completed=done, total=total, visible=True)

    def said(self, text: str) -> None:
        """Print a line above the bar."""
        self._bar.console.print(f"  {text}", highlight=False, markup=False)
