"""A record's value becomes a payload: plain JSON, strictly read, or a validated model."""

import json
from typing import Any, NoReturn

from pydantic import TypeAdapter, ValidationError

from consumer.errors import DecodeError

_USERS_TEXT = {"value_error", "assertion_error"}  # pydantic's kinds whose message a validator wrote
_SHOWN_ERRORS = 3


def read_payload(value: bytes | None, adapter: TypeAdapter[Any] | None) -> Any:
    """`value` as plain JSON, or as what `adapter` validates; a null value is None.

    Raises DecodeError whose text holds no part of the value.
    """
    if adapter is None:
        return None if value is None else parse_json(value)
    try:
        return adapter.validate_json(b"null" if value is None else value)
    except ValidationError as error:
        raise DecodeError(_described(error)) from None


def parse_json(value: bytes) -> Any:
    """`value` as JSON in UTF-8; NaN and Infinity, which JSON does not have, are refused."""
    try:
        return _STRICT_JSON.decode(value.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise DecodeError(f"the value is not UTF-8 (byte {error.start})") from None
    except json.JSONDecodeError as error:
        raise DecodeError(_not_json(value, f"{error.msg} at character {error.pos}")) from None
    except RecursionError:
        raise DecodeError("the value is not usable JSON: nested too deep") from None
    except ValueError:  # Python's bound on the digits of an integer
        raise DecodeError("the value is not usable JSON: number too long") from None


def _refuse_constant(name: str) -> NoReturn:
    raise DecodeError(f"the value is not JSON: {name} is no JSON number")


_STRICT_JSON = json.JSONDecoder(parse_constant=_refuse_constant)


def _not_json(value: bytes, reason: str) -> str:
    if not value:
        return "the value is empty; expected JSON"
    return (
        f"the value is not JSON: {reason}; is value.converter StringConverter and the column jsonb?"
    )


def _described(error: ValidationError) -> str:
    """What pydantic says, without the input that it quotes."""
    details = error.errors(include_input=False, include_url=False, include_context=False)
    if details[0]["type"] == "json_invalid":
        return f"the value is not JSON: {details[0]['msg']}"
    shown = "; ".join(_one(detail) for detail in details[:_SHOWN_ERRORS])
    more = len(details) - _SHOWN_ERRORS
    return f"the payload does not fit {error.title}: {shown}" + (
        f"; {more} more" if more > 0 else ""
    )


def _one(detail: Any) -> str:
    path = ".".join(str(part) for part in detail["loc"]) or "the whole"
    said = "refused by a validator" if detail["type"] in _USERS_TEXT else detail["msg"]
    return f"{path}: {said}"
