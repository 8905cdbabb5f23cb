"""An event's identity: one canonical value however the id was written.

`uuid.UUID()` accepts plus signs, underscores, full-width digits and hyphens anywhere, so it makes one
id of two; here a uuid is what a strict pattern says, and every other text is mapped to a UUIDv5.
"""

import base64
import json
import re
from uuid import UUID, uuid5

from consumer.errors import DecodeError

_UUID_TEXT = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}",
    re.ASCII | re.IGNORECASE,
)
_UUID_BYTES = 16
_UUID_BASE64 = re.compile(r"[A-Za-z0-9+/]{22}==", re.ASCII)
_ENVELOPE_KEYS = {"schema", "payload"}

OTHER_IDS = UUID("b2a4b2f6-57a5-5ac6-9d4d-6a7f3b1c0e55")
"""The UUIDv5 namespace of ids that are no uuids; it never changes, or old duplicates come back."""


def event_identity(raw: bytes) -> tuple[UUID, str]:
    """The canonical id and the id as it was written.

    Reads text, a quoted JSON string, Connect's `{"schema", "payload"}` envelope and the 16 raw bytes
    of a bytea id. Raises DecodeError on an empty id and on bytes that are no UTF-8.
    """
    written = _text(raw)
    if written is None:
        identity = UUID(bytes=raw)
        return identity, str(identity)
    text = _unwrapped(written)
    if not text:
        raise DecodeError("the event id is empty")
    return canonical_id(text), text


def canonical_id(text: str) -> UUID:
    """The uuid that `text` is; else its UUIDv5.

    A uuid is 32 hexadecimal digits in any case, with hyphens in their places or none, in braces or
    not, or the base64 of 16 bytes, as Connect's SimpleHeaderConverter writes a bytea id.
    """
    bare = text[1:-1] if text.startswith("{") and text.endswith("}") else text
    if _UUID_TEXT.fullmatch(bare):
        return UUID(bare)
    if _UUID_BASE64.fullmatch(text):
        return UUID(bytes=base64.b64decode(text))
    return uuid5(OTHER_IDS, text)


def _text(raw: bytes) -> str | None:
    """`raw` as text; None where it is the 16 bytes of a bytea id."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
        if len(raw) != _UUID_BYTES:
            raise DecodeError("the event id is neither UTF-8 text nor 16 raw bytes") from None
    printable = text.isprintable() and text
    return None if len(raw) == _UUID_BYTES and not printable else text


def _unwrapped(text: str) -> str:
    """The id inside a JSON string or Connect's schema envelope; `text` itself where there is none."""
    if not text.startswith(('"', "{")):
        return text
    try:
        value = json.loads(text)
    except ValueError:
        return text
    if isinstance(value, dict) and set(value) == _ENVELOPE_KEYS:
        value = value["payload"]
    return str(value) if isinstance(value, (str, int)) else text
