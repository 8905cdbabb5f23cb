"""What the client makes of Connect's answers: each told in one line, retried or read again."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from consumer.connect.client import ConnectClient
from consumer.errors import (
    ConnectorConfigError,
    ConnectUnavailableError,
    InboxError,
    SettingsError,
)

Answer = tuple[int, Any]
TIMED_OUT = (500, {"error_code": 500, "message": "Request timed out. The worker is currently busy"})


@contextmanager
def answering(*answers: Answer) -> Iterator[tuple[str, list[str]]]:
    """A server that gives these answers one after the other; its address and what it was asked."""
    asked: list[str] = []
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            asked.append(f"{self.command} {self.path}")
            status, body = left.pop(0)
            text = body if isinstance(body, str) else json.dumps(body)
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        do_GET = do_PUT = do_DELETE = answer  # noqa: N815  # http.server's names

        def log_message(self, *_: object) -> None:
            """Be silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def refused(answer: Answer, config: dict[str, str] | None = None) -> InboxError:
    """The error that a PUT with this answer ends in."""
    with (
        answering(answer) as (url, _),
        ConnectClient(url) as client,
        pytest.raises(InboxError) as told,
    ):
        client.put_config("c", config or {})
    return told.value


def test_a_conflict_is_asked_again() -> None:
    """A rebalance passes; the deployment goes on."""
    conflict = (
        409,
        {"error_code": 409, "message": "conflicting operation (e.g. worker rebalance)"},
    )
    with answering(conflict, (200, {"a": "1"})) as (url, asked), ConnectClient(url) as client:
        assert client.config("c") == {"a": "1"}
    assert asked == ["GET /connectors/c/config"] * 2


def test_a_timeout_that_took_effect_all_the_same_is_no_failure() -> None:
    """Connect says 500 after 90 seconds and may have done it: what it has is read again."""
    with answering(TIMED_OUT, (200, {"a": "1"})) as (url, asked), ConnectClient(url) as client:
        client.put_config("c", {"a": "1"})
    assert asked == ["PUT /connectors/c/config", "GET /connectors/c/config"]


def test_a_timeout_without_effect_is_told() -> None:
    """With Connect's words and the address."""
    with (
        answering(TIMED_OUT, (200, {"a": "0"})) as (url, _),
        ConnectClient(url) as client,
        pytest.raises(ConnectUnavailableError, match=rf"{url} answered 500: Request timed out\."),
    ):
        client.put_config("c", {"a": "1"})


def test_what_is_not_there_is_none() -> None:
    """Config, status and delete of a connector that Connect does not know."""
    missing = (404, {"error_code": 404, "message": "No status found for connector c"})
    with answering(*[missing] * 3) as (url, asked), ConnectClient(url) as client:
        assert client.config("c") is None
        assert client.status("c") is None
        assert client.delete("a/c") is False
    assert asked[-1] == "DELETE /connectors/a%2Fc"


def test_a_refusal_is_cut_to_its_point() -> None:
    """Each complaint once, without the advice to ask another endpoint."""
    message = (
        "Connector configuration is invalid and contains the following 2 error(s):\n"
        "The 'database.port' value is invalid: An integer is expected\n"
        "The 'database.port' value is invalid: An integer is expected\n"
        "You can also find the above list of errors at the endpoint "
        "`/connector-plugins/{connectorType}/config/validate`"
    )

    error = refused((400, {"error_code": 400, "message": message}))

    assert isinstance(error, ConnectorConfigError)
    assert str(error) == (
        "Connect refused the config: The 'database.port' value is invalid: An integer is expected"
    )


def test_a_refusal_tells_no_secret() -> None:
    """Connect repeats the values that it refuses."""
    config = {"x.password": "hunter2", "other": "shown", "y.password": "${env:P}", "z.password": ""}
    message = "Invalid value hunter2 for configuration x.password, shown, ${env:P}"

    error = refused((400, {"error_code": 400, "message": message}), config)

    assert str(error).endswith("value [hidden] for configuration x.password, shown, ${env:P}")


@pytest.mark.parametrize("answer", [(404, "<html>"), (404, {"error_code": 404, "message": "no"})])
def test_a_put_that_finds_nothing_to_put_to_is_no_success(answer: Answer) -> None:
    """Something else listens there."""
    assert isinstance(refused(answer), SettingsError)


@pytest.mark.parametrize("answer", [(200, "<html>welcome"), (200, {"not": "a list"}), (404, "?")])
def test_what_is_not_kafka_connect_is_told(answer: Answer) -> None:
    """Another service's port in INBOX_CONNECT_URL."""
    with (
        answering(answer) as (url, _),
        ConnectClient(url) as client,
        pytest.raises(SettingsError, match="is not Kafka Connect; is INBOX_CONNECT_URL right"),
    ):
        client.connectors()


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_login_is_told_without_the_password(status: int) -> None:
    """Waiting does not help."""
    with answering((status, "")) as (url, _):
        secret = url.replace("http://", "http://me:hunter2@")
        with (
            ConnectClient(secret) as client,
            pytest.raises(SettingsError, match=rf"refused with {status}: give user") as told,
        ):
            client.connectors()
    assert "hunter2" not in str(told.value)


def test_a_dead_address_is_told_without_the_password() -> None:
    """Nobody listens."""
    with (
        ConnectClient("http://me:hunter2@127.0.0.1:1/base") as client,
        pytest.raises(
            ConnectUnavailableError, match=r"http://127\.0\.0\.1:1/base does not answer"
        ) as told,
    ):
        client.status("c")
    assert "hunter2" not in str(told.value)


@pytest.mark.parametrize(
    "url", ["localhost:8083", "", "http://", "ftp://x", "http://u:hunter2@h:notaport"]
)
def test_what_is_no_address_is_refused_at_once(url: str) -> None:
    """And not shown, since it may hold a password."""
    with pytest.raises(SettingsError, match="INBOX_CONNECT_URL: expected an address") as told:
        ConnectClient(url)
    assert "hunter2" not in str(told.value)
