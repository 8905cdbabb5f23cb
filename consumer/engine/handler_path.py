"""MODULE:HANDLER, as the command takes it, becomes a handler."""

import difflib
import importlib
import inspect
import sys
from pathlib import Path
from types import ModuleType

from consumer.errors import HandlerPathError
from consumer.handler import EventHandler


def load_handler(path: str) -> EventHandler:
    """Import `package.module:Class`, from the working folder too, and make the handler.

    Raises HandlerPathError; an error that the module itself raises passes as it is, unless it is an
    ImportError, which is named.
    """
    module_name, _, class_name = path.partition(":")
    if not module_name or not class_name:
        raise HandlerPathError(
            f"expected MODULE:HANDLER, such as examples.orders.warehouse:Warehouse; got {path!r}"
        )
    return _made(path, _handler_class(path, _module(path, module_name), class_name))


def _module(path: str, name: str) -> ModuleType:
    working_folder = str(Path.cwd())
    if working_folder not in sys.path:
        sys.path.insert(0, working_folder)
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise HandlerPathError(
            f"{path}: cannot import {name!r} from {working_folder}: {error}"
        ) from error


def _handler_class(path: str, module: ModuleType, name: str) -> type[EventHandler]:
    found = getattr(module, name, None)
    if inspect.isclass(found) and issubclass(found, EventHandler):
        return found
    handlers = [
        each
        for each, value in vars(module).items()
        if inspect.isclass(value) and issubclass(value, EventHandler) and value is not EventHandler
    ]
    near = difflib.get_close_matches(name, handlers, n=1, cutoff=0.0)
    hint = f"; did you mean {near[0]}?" if near else f"; {module.__name__} has no handlers"
    problem = "is not there" if found is None else "is no EventHandler subclass"
    raise HandlerPathError(f"{path}: {name} {problem}{hint}")


def _made(path: str, handler_class: type[EventHandler]) -> EventHandler:
    try:
        return handler_class()
    except TypeError as error:
        raise HandlerPathError(f"{path}: cannot be made without arguments: {error}") from error
