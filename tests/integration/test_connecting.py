"""A connection that cannot be had is told plainly, and without its password."""

import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from consumer.errors import PostgresUnavailableError, SettingsError
from consumer.store.connecting import connect, masked

SECRET = "hunter2"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"password": SECRET}, "refused the connection.*password authentication failed"),
        ({"dbname": "nowhere"}, r'/nowhere refused the connection.*"nowhere" does not exist'),
        ({"user": "ghost"}, "Postgres at ghost@.* refused the connection"),
        ({"sslmode": "bogus"}, 'cannot be used: .*invalid sslmode value: "bogus"'),
        ({"connect_timeout": "soon"}, "cannot be used: .*connect_timeout: 'soon'"),
    ],
)
def test_what_a_person_must_change_is_a_settings_error(
    empty_database: str, changes: dict[str, str], said: str
) -> None:
    """Waiting does not help."""
    given = conninfo_to_dict(empty_database) | {"password": SECRET} | changes
    if "password" not in changes:
        given["password"] = conninfo_to_dict(empty_database)["password"]

    with pytest.raises(SettingsError, match=said) as caught:
        connect(make_conninfo(**given))
    assert str(given["password"]) not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    ["postgresql://u:hunter2@127.0.0.1:1/shop", "host=127.0.0.1 port=1 user=u password=hunter2 dbname=shop"],
)  # fmt: skip
def test_a_server_that_is_not_there_is_unavailable(url: str) -> None:
    """Waiting may help; the text says where was looked and what to do."""
    with pytest.raises(PostgresUnavailableError, match=r"u@127\.0\.0\.1:1/shop does not") as caught:
        connect(url)
    assert "is it running, and is the URL right?" in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["nonsense:hunter2", "postgresql://u:hunter2@[::1/x", "user=u hunter2"]
)
def test_what_is_no_url_is_refused_without_being_shown(url: str) -> None:
    """It may be all password."""
    with pytest.raises(SettingsError, match="expected postgresql://user:password@") as caught:
        connect(url)
    assert SECRET not in str(caught.value)


def test_a_masked_url_names_no_secret() -> None:
    """What logs and errors show."""
    assert masked("postgresql://u:hunter2@db:6432/shop?sslpassword=hunter2") == "u@db:6432/shop"
    assert masked("dbname=shop password=hunter2") == "localhost:5432/shop"


def test_a_connection_says_whose_it_is_unless_the_url_does(empty_database: str) -> None:
    """What the person on call sees in pg_stat_activity."""
    for url, name in (
        (empty_database, "debezium-inbox"),
        (make_conninfo(empty_database, application_name="mine"), "mine"),
    ):
        with connect(url) as connection:
            row = connection.execute(sql.SQL("SHOW application_name")).fetchone()
        assert row == (name,)
