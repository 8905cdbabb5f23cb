"""How a service says what it does with events: subclass EventHandler, mark methods with @handles."""

import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar, get_args, get_origin, get_type_hints

import psycopg
from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter

from consumer.errors import DeclarationError
from consumer.event import Event

Topics = tuple[str, ...] | re.Pattern[str]
Connection = psycopg.Connection[Any]
Method = TypeVar("Method", bound=Callable[..., None])

_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")  # what Kafka allows for a topic; groups use it too
_TYPES_ATTRIBUTE = "_handles_types"
_RETURN_UNRUN = (
    inspect.iscoroutinefunction,
    inspect.isgeneratorfunction,
    inspect.isasyncgenfunction,
)
_NOT_POSITIONAL = (
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.VAR_KEYWORD,
    inspect.Parameter.KEYWORD_ONLY,
)


def handles(*types: str) -> Callable[[Method], Method]:
    """Mark a method `(self, event: Event[T], connection)` as the one that takes events of `types`."""
    if not types or not all(isinstance(each, str) and each for each in types):
        raise DeclarationError(f"@handles takes event types, such as 'OrderPlaced'; got {types!r}")

    def mark(method: Method) -> Method:
        setattr(method, _TYPES_ATTRIBUTE, types)
        return method

    return mark


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a handler class declares, checked when the class is made."""

    methods: Mapping[str, str]
    """Event type to the name of the method that takes it."""
    payloads: Mapping[str, TypeAdapter[Any] | None]
    """Event type to what validates its payload; None is plain JSON."""
    everything: bool
    """The class takes every event, also those of no type: it overrides handle or handle_batch."""
    any_payload: TypeAdapter[Any] | None
    """What validates the payloads of a class that takes everything."""

    def takes(self, event_type: str | None) -> bool:
        """Whether events of this type reach the handler."""
        return self.everything or event_type in self.methods

    def payload_adapter(self, event_type: str | None) -> TypeAdapter[Any] | None:
        """What validates the payload of an event that `takes` accepts; None is plain JSON."""
        return self.any_payload if self.everything else self.payloads[str(event_type)]


class EventHandler:
    """The base of a service's handlers; it declares `consumer`, `topics` and what takes the events.

    A subclass marks methods with `@handles`, or overrides `handle` or `handle_batch` to take
    everything. The connection is inside the framework's transaction: what a handler writes through
    it commits together with the event's row in `processed_events`, or not at all.
    """

    consumer: ClassVar[str]
    """The stable identity: part of every key, and the default name of the Kafka group."""
    topics: ClassVar[Topics]
    """Topic names, or one compiled pattern."""
    pipeline: ClassVar[bool] = True
    """Statements are sent without waiting for their results, unless the handler reads one.

    What a statement raises then comes later, and is that event's failure all the same. A handler that
    catches database errors, or uses COPY or savepoints, sets this to False.
    """
    declaration: ClassVar[Declaration]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _check_consumer(cls)
        _check_topics(cls)
        # Annotations may name models that are local to the function in which the class stands.
        cls.declaration = _declare(cls, sys._getframe(1).f_locals)  # noqa: SLF001  # no other way

    def handle(self, event: Event[Any], connection: Connection) -> None:
        """Give one event to the method that takes its type; override it to take everything."""
        getattr(self, self.declaration.methods[str(event.type)])(event, connection)

    def handle_batch(self, events: Sequence[Event[Any]], connection: Connection) -> None:
        """Apply fresh events, in order, in one transaction; override it for set-based work."""
        for event in events:
            self.handle(event, connection)


def _check_consumer(cls: type[EventHandler]) -> None:
    name = getattr(cls, "consumer", None)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise DeclarationError(
            f"{cls.__qualname__}.consumer: expected a stable name of letters, digits, '.', '_' or "
            f"'-' (it is part of every key in the inbox), got {name!r}"
        )


def _check_topics(cls: type[EventHandler]) -> None:
    topics = getattr(cls, "topics", None)
    if isinstance(topics, re.Pattern) and isinstance(topics.pattern, str):
        return
    named = isinstance(topics, (tuple, list)) and bool(topics)
    if not named or not all(
        isinstance(each, str) and _NAME.fullmatch(each) for each in topics or ()
    ):
        raise DeclarationError(
            f"{cls.__qualname__}.topics: expected a tuple of topic names, such as "
            f"('outbox.order',), or one compiled pattern, got {topics!r}"
        )


def _declare(cls: type[EventHandler], names: Mapping[str, Any]) -> Declaration:
    marked = dict(_marked_methods(cls))
    overridden = [name for name in ("handle", "handle_batch") if _overrides(cls, name)]
    if bool(marked) + len(overridden) != 1:
        found = [*overridden, *sorted(set(marked.values()))] or "none of them"
        raise DeclarationError(
            f"{cls.__qualname__}: expected methods marked with @handles, or an own handle(), or an "
            f"own handle_batch(), one of the three; got {found}"
        )
    if overridden:
        return Declaration({}, {}, everything=True, any_payload=_adapter(cls, overridden[0], names))
    adapters = {name: _adapter(cls, name, names) for name in set(marked.values())}
    payloads = {event_type: adapters[name] for event_type, name in marked.items()}
    return Declaration(marked, payloads, everything=False, any_payload=None)


def _marked_methods(cls: type[EventHandler]) -> Iterator[tuple[str, str]]:
    taken: dict[str, str] = {}
    for name, _ in inspect.getmembers(cls, inspect.isfunction):
        for event_type in _types_of(cls, name):
            if event_type in taken:
                raise DeclarationError(
                    f"{cls.__qualname__}: event type {event_type!r} is taken by two methods, "
                    f"{taken[event_type]} and {name}; expected one"
                )
            taken[event_type] = name
            yield event_type, name


def _types_of(cls: type[EventHandler], name: str) -> tuple[str, ...]:
    """The nearest mark; a method that overrides a marked one without a mark takes the same types."""
    marks = (getattr(vars(base).get(name), _TYPES_ATTRIBUTE, ()) for base in cls.__mro__)
    return next((types for types in marks if types), ())


def _overrides(cls: type[EventHandler], name: str) -> bool:
    return getattr(cls, name) is not getattr(EventHandler, name)


def _adapter(
    cls: type[EventHandler], name: str, names: Mapping[str, Any]
) -> TypeAdapter[Any] | None:
    """What validates the payload that method `name` of `cls` asks for in its annotation."""
    where = f"{cls.__qualname__}.{name}"
    payload = _payload_type(where, _event_annotation(where, getattr(cls, name), names))
    if payload is Any:
        return None
    try:
        return TypeAdapter(payload)
    except (PydanticSchemaGenerationError, PydanticUserError) as error:
        reason = str(error).splitlines()[0]
        raise DeclarationError(f"{where}: pydantic cannot validate {payload!r}: {reason}") from None


def _event_annotation(where: str, method: Any, names: Mapping[str, Any]) -> Any:
    if any(returns_unrun(method) for returns_unrun in _RETURN_UNRUN):
        raise DeclarationError(
            f"{where}: expected a plain method; calling an async def or a generator runs nothing, and "
            f"its events would be lost"
        )
    parameters = list(inspect.signature(method).parameters.values())
    expected = 3  # self, the event or events, the connection
    if len(parameters) != expected or any(p.kind in _NOT_POSITIONAL for p in parameters):
        raise DeclarationError(
            f"{where}: expected the parameters (self, event, connection), "
            f"got ({', '.join(str(p.name) for p in parameters)})"
        )
    try:
        return get_type_hints(method, localns=dict(names)).get(parameters[1].name)
    except NameError as error:
        raise DeclarationError(
            f"{where}: unknown annotation: {error}; define the model above the handler"
        ) from None


def _payload_type(where: str, annotation: Any) -> Any:
    """The T of `Event[T]` or `Sequence[Event[T]]`; Any where nothing is said."""
    inner = annotation
    if inspect.isclass(get_origin(inner)) and issubclass(get_origin(inner), Sequence):
        inner = get_args(inner)[0]
    if inner in (None, Any, Event):
        return Any
    if get_origin(inner) is Event:
        payload = get_args(inner)[0]
        return Any if isinstance(payload, TypeVar) else payload
    raise DeclarationError(
        f"{where}: unknown annotation: expected Event[…] of a pydantic model or a plain type for "
        f"the event, got {annotation!r}"
    )
