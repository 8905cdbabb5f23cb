"""Kafka Connect's REST interface, as far as a deployment needs it."""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import quote

import httpx

from consumer.errors import ConnectorConfigError, ConnectUnavailableError, SettingsError

# A worker itself gives up on a request after 90 s and says so; nobody listening is known sooner.
TIMEOUT = httpx.Timeout(100.0, connect=10.0)
CONFLICT_PATIENCE_S = 60.0
_CONFLICT_PAUSE_S = 0.5
_BAD_REQUEST, _UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND, _CONFLICT = 400, 401, 403, 404, 409

_SECRET_NAME = re.compile(r"password|secret|token|credential|jaas", re.IGNORECASE)
# What stands around the point of Connect's messages.
_PADDING = re.compile(
    r"Connector configuration is invalid and contains the following \d+ error\(s\):"
    r"|You can also find the above list of errors at the endpoint \S+"
    r"|, available connectors are: .*"
)
# Connect says this of database.hostname when a login with resolved references fails.
_UNTOLD = "resolved from the config provider reference failed validation"


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
    """One Connect cluster behind one URL, which may hold user and password.

    Raises ConnectUnavailableError when nobody answers, ConnectorConfigError on a config that Connect
    refuses, SettingsError when the URL is wrong or leads to something else.
    """

    def __init__(self, url: str) -> None:
        parsed = _parsed(url)
        bare = parsed.copy_with(username=None, password=None)  # what may stand in errors and logs
        self._shown = str(bare)
        login = (parsed.username, parsed.password) if parsed.username else None
        self._http = httpx.Client(base_url=bare, auth=login, timeout=TIMEOUT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def connectors(self) -> list[str]:
        """The names of the connectors that are deployed."""
        return sorted(self._json(self._request("GET", "/connectors"), list))

    def config(self, name: str) -> dict[str, str] | None:
        """The config that is deployed, with references to secrets unresolved; None if there is none."""
        response = self._request("GET", _path(name, "/config"), may_miss=True)
        return None if response.status_code == _NOT_FOUND else self._json(response, dict)

    def put_config(self, name: str, config: Mapping[str, str]) -> None:
        """Create the connector or replace its config."""
        try:
            self._request("PUT", _path(name, "/config"), json=dict(config))
        except ConnectUnavailableError:
            # a worker that gave no answer, or said that it timed out, may have done it all the same
            if self.config(name) != dict(config):
                raise
        except ConnectorConfigError as error:
            raise ConnectorConfigError(_without_secrets(str(error), config)) from None

    def status(self, name: str) -> ConnectorStatus | None:
        """How the connector is; None where Connect does not know (yet)."""
        response = self._request("GET", _path(name, "/status"), may_miss=True)
        if response.status_code == _NOT_FOUND:
            return None
        said = self._json(response, dict)
        tasks = [TaskStatus(t["state"], t["worker_id"], t.get("trace", "")) for t in said["tasks"]]
        connector = said["connector"]
        return ConnectorStatus(connector["state"], connector.get("trace", ""), tuple(tasks))

    def delete(self, name: str) -> bool:
        """Delete the connector; False when there was none. Its slot and offsets stay."""
        response = self._request("DELETE", _path(name), may_miss=True)
        return response.status_code != _NOT_FOUND

    def _request(
        self, method: str, path: str, *, may_miss: bool = False, **arguments: Any
    ) -> httpx.Response:
        """Ask, again while a rebalance or a concurrent change makes Connect answer 409."""
        deadline = time.monotonic() + CONFLICT_PATIENCE_S
        while True:
            response = self._ask(method, path, **arguments)
            if response.status_code != _CONFLICT or time.monotonic() > deadline:
                return self._checked(response, may_miss=may_miss)
            time.sleep(_CONFLICT_PAUSE_S)

    def _ask(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        try:
            return self._http.request(method, path, **arguments)
        except httpx.HTTPError as error:
            raise ConnectUnavailableError(
                f"Kafka Connect at {self._shown} does not answer ({type(error).__name__}); is it "
                f"running, and is INBOX_CONNECT_URL right?"
            ) from error

    def _checked(self, response: httpx.Response, *, may_miss: bool) -> httpx.Response:
        status = response.status_code
        if response.is_success or (status == _NOT_FOUND and may_miss):
            return response
        if status == _BAD_REQUEST:
            raise ConnectorConfigError(f"Connect refused the config: {_point(response)}")
        if status in {_UNAUTHORIZED, _FORBIDDEN}:
            raise SettingsError(
                f"Kafka Connect at {self._shown} refused with {status}: give user and password in "
                f"INBOX_CONNECT_URL, as http://user:password@host:port"
            )
        if status == _NOT_FOUND:
            raise self._is_something_else()
        raise ConnectUnavailableError(
            f"Kafka Connect at {self._shown} answered {status}: {_point(response)}"
        )

    def _json(self, response: httpx.Response, expected: type) -> Any:
        try:
            found = response.json()
        except ValueError:
            raise self._is_something_else() from None
        if not isinstance(found, expected):
            raise self._is_something_else()
        return found

    def _is_something_else(self) -> SettingsError:
        return SettingsError(
            f"what answers at {self._shown} is not Kafka Connect; is INBOX_CONNECT_URL right?"
        )


def _parsed(url: str) -> httpx.URL:
    """The URL; the error does not show it, since it may hold a password."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        parsed = httpx.URL()
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        raise SettingsError("INBOX_CONNECT_URL: expected an address such as http://localhost:8083")
    return parsed


def _path(name: str, more: str = "") -> str:
    return f"/connectors/{quote(name, safe='')}{more}"


def _point(response: httpx.Response) -> str:
    """Connect's own words without their padding, in one line."""
    try:
        text = str(response.json()["message"])
    except (ValueError, KeyError, TypeError):
        text = response.text[:300]  # a proxy's page
    lines = [" ".join(line.split()) for line in _PADDING.sub("", text).splitlines()]
    point = "; ".join(dict.fromkeys(line for line in lines if line))
    if _UNTOLD in point:
        point += " (is the worker's INBOX_CONNECTOR_DATABASE_… right, password included?)"
    return point


def _without_secrets(text: str, config: Mapping[str, str]) -> str:
    """`text` without what stands openly in `config` where a secret belongs: Connect repeats values."""
    for key, value in config.items():
        if _SECRET_NAME.search(key) and value and not value.startswith("${"):
            text = text.replace(value, "[hidden]")
    return text
