"""An event has one identity however its id was written, and two events never share one."""

from uuid import UUID, uuid5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.errors import DecodeError
from consumer.wire.identity import OTHER_IDS, canonical_id, event_identity

ID = UUID("0199a000-0000-7000-8000-000000000004")


@pytest.mark.parametrize(
    "written",
    [
        b"0199a000-0000-7000-8000-000000000004",
        b"0199A000-0000-7000-8000-000000000004",
        b"0199a00000007000800000000000000" + b"4",
        b'"0199a000-0000-7000-8000-000000000004"',
        b'{"schema":{"type":"string"},"payload":"0199a000-0000-7000-8000-000000000004"}',
        b"{0199a000-0000-7000-8000-000000000004}",
        ID.bytes,
        b"AZmgAAAAcACAAAAAAAAABA==",
    ],
)
def test_a_uuid_is_the_same_event_in_every_form(written: bytes) -> None:
    """Text in any case, quoted, in an envelope, in braces, as 16 bytes or their base64."""
    assert event_identity(written)[0] == ID


@pytest.mark.parametrize(
    "written",
    [
        "+199a000000070008000000000000004",
        "0x99a000000070008000000000000004",
        "0199a0_0000070008000000000000004",
        "0199a000-00007000-8000-000000000004",
        "urn:uuid:0199a000-0000-7000-8000-000000000004",
        "０199a000-0000-7000-8000-000000000004",
        "0199a000-0000-7000-8000-000000000004\n",
        "42",
    ],
)
def test_what_only_looks_like_a_uuid_is_another_event(written: str) -> None:
    """uuid.UUID() accepts some of these and would make two events one."""
    identity, original = event_identity(written.encode())

    assert identity == uuid5(OTHER_IDS, written) != ID
    assert original == written


def test_a_number_in_json_and_the_same_number_as_text_are_one_event() -> None:
    """The header converter decides how a bigint id looks, not which event it is."""
    enveloped = b'{"schema":{"type":"int64"},"payload":42}'

    assert event_identity(enveloped)[0] == event_identity(b"42")[0] == event_identity(b'"42"')[0]


@pytest.mark.parametrize("written", [b"", b'""'])
def test_an_empty_id_is_refused(written: bytes) -> None:
    """An empty id would make one event of all that have it."""
    with pytest.raises(DecodeError, match="the event id is empty"):
        event_identity(written)


def test_bytes_that_are_neither_text_nor_a_uuid_are_refused() -> None:
    """No id is guessed from binary junk."""
    with pytest.raises(DecodeError, match="neither UTF-8 text nor 16 raw bytes"):
        event_identity(b"\xff\xfe\xfd")


@given(st.uuids())
def test_every_uuid_is_itself(identity: UUID) -> None:
    """The canonical id of a uuid's text is that uuid."""
    assert canonical_id(str(identity)) == identity


@given(st.text(min_size=1), st.text(min_size=1))
def test_different_texts_are_different_events(one: str, other: str) -> None:
    """Two ids are one only when they are the same text or the same uuid."""
    if canonical_id(one) == canonical_id(other):
        assert one == other or canonical_id(one).version != 5


@given(st.binary(min_size=16, max_size=16))
def test_16_bytes_are_always_an_identity(raw: bytes) -> None:
    """A bytea id is read as it is; 16 printable characters are text."""
    identity, _ = event_identity(raw)

    assert identity == UUID(bytes=raw) or raw.decode().isprintable()
