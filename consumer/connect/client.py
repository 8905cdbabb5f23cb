"""Kafka Connect's REST interface, as far as a deployment needs it."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import quote

import httpx

from consumer.errors import ConnectorConfigError, ConnectUnavailableError

TIMEOUT_S = 100.0  # a worker itself gives up on a request after 90 s and says so
CONFLICT_PATIENCE_S = 60.0
_CONFLICT_PAUSE_S = 0.5
_BAD_REQUEST, _NOT_FOUND, _CONFLICT = 400, 404, 409


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """One task of a connector."""

    state: str
    worker: str
    trace: str


@dataclass(frozen=True, slots=True)
class ConnectorStatus:
    """A connector and its tasks, as Connect says."""

    state: str
    trace: str
    tasks: tuple[TaskStatus, ...]

    @property
    def running(self) -> bool:
        """Whether the connector and at least one task run, and no task does not."""
        return (
            self.state == "RUNNING"
            and bool(self.tasks)
            and all(task.state == "RUNNING" for task in self.tasks)
        )

    @property
    def failure(self) -> str | None:
        """The trace of what FAILED, or None."""
        parts = [(self.state, self.trace), *((task.state, task.trace) for task in self.tasks)]
        return next((trace for state, trace in parts if state == "FAILED"), None)


class ConnectClient:
    """One Connect cluster behind one URL.

    Raises ConnectUnavailableError when nobody answers, ConnectorConfigError on what it refuses.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._http = httpx.Client(base_url=url, timeout=TIMEOUT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def connectors(self) -> list[str]:
        """The names of the connectors that are deployed."""
        return sorted(self._request("GET", "/connectors").json())

    def config(self, name: str) -> dict[str, str] | None:
        """The config that is deployed, with references to secrets unresolved; None if there is none."""
        response = self._request("GET", _path(name, "/config"))
        return None if response.status_code == _NOT_FOUND else dict(response.json())

    def put_config(self, name: str, config: Mapping[str, str]) -> None:
        """Create the connector or replace its config."""
        self._request("PUT", _path(name, "/config"), json=dict(config))

    def status(self, name: str) -> ConnectorStatus | None:
        """How the connector is; None where Connect does not know (yet)."""
        response = self._request("GET", _path(name, "/status"))
        if response.status_code == _NOT_FOUND:
            return None
        said = response.json()
        tasks = [TaskStatus(t["state"], t["worker_id"], t.get("trace", "")) for t in said["tasks"]]
        connector = said["connector"]
        return ConnectorStatus(connector["state"], connector.get("trace", ""), tuple(tasks))

    def delete(self, name: str) -> bool:
        """Delete the connector; False when there was none. Its slot and offsets stay."""
        return self._request("DELETE", _path(name)).status_code != _NOT_FOUND

    def _request(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        """Ask, again while a rebalance or a concurrent change makes Connect answer 409."""
        deadline = time.monotonic() + CONFLICT_PATIENCE_S
        while True:
            response = self._ask(method, path, **arguments)
            if response.status_code != _CONFLICT or time.monotonic() > deadline:
                return self._checked(response)
            time.sleep(_CONFLICT_PAUSE_S)

    def _ask(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        try:
            return self._http.request(method, path, **arguments)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ConnectUnavailableError(
                f"Kafka Connect at {self._url} does not answer ({type(error).__name__}); is it "
                f"running, and is INBOX_CONNECT_URL right?"
            ) from error

    def _checked(self, response: httpx.Response) -> httpx.Response:
        if response.is_success or response.status_code == _NOT_FOUND:
            return response
        if response.status_code == _BAD_REQUEST:
            raise ConnectorConfigError(f"Connect refused the config: {_message(response)}")
        raise ConnectUnavailableError(
            f"Kafka Connect at {self._url} answered {response.status_code}: {_message(response)}"
        )


def _path(name: str, more: str = "") -> str:
    return f"/connectors/{quote(name, safe='')}{more}"


def _message(response: httpx.Response) -> str:
    try:
        text = str(response.json()["message"])
    except (ValueError, KeyError, TypeError):
        text = response.text
    return " ".join(text.split())
