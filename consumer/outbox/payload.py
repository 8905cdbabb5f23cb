"""Refuse, before the row is written, what JSON, jsonb or the reading consumer cannot carry."""

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, TypeAdapter

from consumer.errors import PublishError

LONGEST_INTEGER = 10**4300
"""Python reads integers of up to 4,300 digits (sys.int_info), so none longer may be published."""

MOST_LEVELS = 100
"""How deep a payload may nest; JSON readers, pydantic's among them, stop at about 200."""


def to_json(payload: Any) -> str:
    """`payload` (a pydantic model, a dataclass or plain JSON) as JSON text that jsonb accepts.

    Raises PublishError with the path of the first value that cannot be carried.
    """
    plain = _plain(payload)
    check_carried(plain, "payload")
    return json.dumps(plain, ensure_ascii=False, allow_nan=False)


def check_carried(value: Any, path: str, level: int = 0) -> None:
    """Raise PublishError when `value`, or anything inside it, would not come back as it is."""
    if level > MOST_LEVELS:
        raise PublishError(f"{path}: nested deeper than {MOST_LEVELS} levels")
    if isinstance(value, str):
        _check_text(value, path)
    elif isinstance(value, bool) or value is None:
        return
    elif isinstance(value, int):
        _check_integer(value, path)
    elif isinstance(value, float):
        _check_float(value, path)
    elif isinstance(value, Mapping):
        _check_object(value, path, level)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            check_carried(item, f"{path}[{index}]", level + 1)
    else:
        raise PublishError(f"{path}: {type(value).__name__} is no JSON value; use a pydantic model")


def _plain(payload: Any) -> Any:
    try:
        if isinstance(payload, BaseModel):
            return payload.model_dump(mode="json")
        if dataclasses.is_dataclass(payload) and not isinstance(payload, type):
            return TypeAdapter(type(payload)).dump_python(payload, mode="json")
    except ValueError as error:  # pydantic's serialization errors, lone surrogates among them
        reason = type(error).__name__
        raise PublishError(
            f"payload: {type(payload).__name__} has no JSON form ({reason})"
        ) from None
    return payload


def _check_text(text: str, path: str) -> None:
    if "\x00" in text:
        raise PublishError(f"{path}: holds the character U+0000, which jsonb cannot carry")
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise PublishError(f"{path}: holds a lone surrogate, which UTF-8 cannot carry")


def _check_integer(number: int, path: str) -> None:
    if abs(number) >= LONGEST_INTEGER:
        raise PublishError(
            f"{path}: the integer has more than 4300 digits, no consumer reads it back"
        )


def _check_float(number: float, path: str) -> None:
    if not math.isfinite(number):
        raise PublishError(f"{path}: {number} is no JSON number")


def _check_object(value: Mapping[Any, Any], path: str, level: int) -> None:
    for key, item in value.items():
        if not isinstance(key, str):
            raise PublishError(f"{path}: the key {key!r} is no text, as JSON's keys are")
        _check_text(key, f"{path}: a key")
        check_carried(item, f"{path}.{key}", level + 1)
