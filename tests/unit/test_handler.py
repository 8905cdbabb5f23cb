"""A handler class is checked when it is made."""

import re
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel

from consumer import Event, EventHandler, handles
from consumer.errors import DeclarationError
from tests.builders import an_event


class Placed(BaseModel):
    n: int


def test_each_event_reaches_the_method_that_takes_its_type() -> None:
    """A type goes to its method, several types may share one."""
    seen: list[tuple[str, str | None]] = []

    class Shop(EventHandler):
        consumer = "shop"
        topics = ("outbox.order",)

        @handles("OrderPlaced")
        def placed(self, event: Event[Placed], connection: Any) -> None:
            seen.append(("placed", event.type))

        @handles("OrderPaid", "OrderSent")
        def later(self, event: Event[Any], connection: Any) -> None:
            seen.append(("later", event.type))

    shop = Shop()
    types = ("OrderPlaced", "OrderPaid", "OrderSent")
    shop.handle_batch([an_event(type=each) for each in types], None)  # type: ignore[arg-type]

    assert seen == [("placed", "OrderPlaced"), ("later", "OrderPaid"), ("later", "OrderSent")]
    assert Shop.declaration.takes("OrderSent")
    assert not Shop.declaration.takes("OrderLost")
    assert not Shop.declaration.takes(None)


def test_a_model_local_to_a_function_is_found_in_a_postponed_annotation() -> None:
    """Annotations that are text name what is visible where the class stands."""

    class Local(BaseModel):
        n: int

    class Shop(EventHandler):
        consumer = "shop"
        topics = ("outbox.order",)

        @handles("OrderPlaced")
        def placed(self, event: "Event[Local]", connection: Any) -> None: ...

    adapter = Shop.declaration.payload_adapter("OrderPlaced")
    assert adapter is not None
    assert adapter.validate_python({"n": 1}) == Local(n=1)


def test_a_handler_that_overrides_handle_takes_everything_with_its_payload_type() -> None:
    """Overriding handle or handle_batch takes all events, typed or not."""

    class One(EventHandler):
        consumer = "one"
        topics = re.compile(r"outbox\..*")

        def handle(self, event: Event[Placed], connection: Any) -> None: ...

    class Many(EventHandler):
        consumer = "many"
        topics = ("outbox.order",)

        def handle_batch(self, events: Any, connection: Any) -> None: ...

    assert One.declaration.takes(None)
    assert One.declaration.payload_adapter("x") is not None
    assert Many.declaration.takes("x")
    assert Many.declaration.payload_adapter("x") is None


def test_a_subclass_keeps_the_methods_and_may_replace_one() -> None:
    """Inheritance works as in Python: the same name replaces, another type adds."""

    class Base(EventHandler):
        consumer = "base"
        topics = ("outbox.order",)

        @handles("A")
        def a(self, event: Event[Any], connection: Any) -> None: ...

    class More(Base):
        @handles("B")
        def b(self, event: Event[UUID], connection: Any) -> None: ...

    assert dict(More.declaration.methods) == {"A": "a", "B": "b"}


def _declare(**attributes: Any) -> None:
    def placed(self: Any, event: Event[Any], connection: Any) -> None: ...

    defaults: dict[str, Any] = {
        "consumer": "shop",
        "topics": ("outbox.order",),
        "placed": handles("OrderPlaced")(placed),
    }
    body = {key: value for key, value in (defaults | attributes).items() if value is not None}
    type("Shop", (EventHandler,), body)


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({"consumer": None}, r"Shop\.consumer: expected a stable name .* got None"),
        ({"consumer": ""}, r"Shop\.consumer"),
        ({"consumer": "two words"}, r"Shop\.consumer"),
        ({"consumer": 7}, r"Shop\.consumer"),
        ({"topics": None}, r"Shop\.topics: expected .* got None"),
        ({"topics": ()}, r"Shop\.topics: expected .* got \(\)"),
        ({"topics": "outbox.order"}, r"Shop\.topics: expected a tuple"),
        ({"topics": ("a b",)}, r"Shop\.topics"),
        ({"topics": ("a", 1)}, r"Shop\.topics"),
        ({"topics": re.compile(b"x")}, r"Shop\.topics"),
        ({"placed": None}, r"expected methods marked with @handles.* got none of them"),
    ],
)
def test_a_wrong_declaration_fails_with_class_and_expectation(
    attributes: dict[str, Any], said: str
) -> None:
    """The error names the class, what is wrong and what was expected."""
    with pytest.raises(DeclarationError, match=said):
        _declare(**attributes)


def _method(parameters: str, annotation: str = "") -> Any:
    names: dict[str, Any] = {"Event": Event, "Any": Any}
    exec(f"def placed({parameters}){annotation}: ...", names)  # noqa: S102  # a signature as data
    return handles("OrderPlaced")(names["placed"])


@pytest.mark.parametrize(
    ("method", "said"),
    [
        (_method("self, event"), r"Shop\.placed: expected the parameters"),
        (_method("self, event, connection, more"), r"Shop\.placed: expected the parameters"),
        (_method("self, *events, connection"), r"Shop\.placed: expected the parameters"),
        (_method("self, event: int, connection"), r"Shop\.placed: unknown annotation.*int"),
        (_method("self, event: 'Event[Missing]', connection"), r"Missing.*define the model above"),
        (_method("self, event: Event[object()], connection"), r"Shop\.placed: "),
    ],
)
def test_a_wrong_method_fails_with_class_and_method(method: Any, said: str) -> None:
    """Parameters and annotations are checked when the class is made."""
    with pytest.raises(DeclarationError, match=said):
        _declare(placed=method)


def test_two_methods_for_one_type_fail_with_both_names() -> None:
    """One type has one method."""
    with pytest.raises(DeclarationError, match=r"'OrderPlaced' is taken by two methods, also and"):
        _declare(also=_method("self, event, connection"))


def test_methods_and_an_own_handle_are_one_too_many() -> None:
    """A class says in one way what takes its events."""

    def handle(self: Any, event: Event[Any], connection: Any) -> None: ...

    with pytest.raises(DeclarationError, match="one of the three"):
        _declare(handle=handle)


@pytest.mark.parametrize("types", [(), ("",), (1,)])
def test_handles_takes_names_of_types(types: tuple[Any, ...]) -> None:
    """@handles without a type marks nothing."""
    with pytest.raises(DeclarationError, match="@handles takes event types"):
        handles(*types)


def coroutine() -> Any:
    async def method(_self: Any, event: Any, connection: Any) -> None:
        pass

    return method


def generator() -> Any:
    def method(_self: Any, event: Any, connection: Any) -> Any:
        yield

    return method


def async_generator() -> Any:
    async def method(_self: Any, event: Any, connection: Any) -> Any:
        yield

    return method


@pytest.mark.parametrize("make", [coroutine, generator, async_generator])
@pytest.mark.parametrize("name", ["placed", "handle", "handle_batch"])
def test_a_method_whose_call_runs_nothing_is_refused_and_loses_no_events(
    name: str, make: Callable[[], Any]
) -> None:
    """Its events would be marked as applied, with no effect."""
    taking = handles("OrderPlaced")(make()) if name == "placed" else make()
    names = {"consumer": "shop", "topics": ("outbox.order",), name: taking}

    with pytest.raises(DeclarationError, match="async def or a generator runs nothing"):
        type("Shop", (EventHandler,), names)


def test_an_override_without_a_mark_takes_the_types_of_the_method_it_overrides() -> None:
    """Without that its events would be passed over; a mark of its own wins."""

    class Shop(EventHandler):
        consumer = "shop"
        topics = ("outbox.order",)

        @handles("OrderPlaced")
        def placed(self, event: Event[Any], connection: Any) -> None: ...

    class Same(Shop):
        def placed(self, event: Event[Any], connection: Any) -> None: ...

    class Other(Shop):
        @handles("OrderSent")
        def placed(self, event: Event[Any], connection: Any) -> None: ...

    assert Same.declaration.methods == {"OrderPlaced": "placed"}
    assert Other.declaration.methods == {"OrderSent": "placed"}
