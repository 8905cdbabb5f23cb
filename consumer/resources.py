"""Where the data files are: beside the package in a checkout, inside it in an installed wheel."""

from pathlib import Path

PACKAGE = Path(__file__).parent


def data_folder(name: str) -> Path:
    """The folder `schema`, `connectors` or `examples`, in a checkout or in a wheel."""
    inside = PACKAGE / name
    return inside if inside.is_dir() else PACKAGE.parent / name


def examples_package() -> str:
    """The import name of the example's package."""
    return "consumer.examples" if (PACKAGE / "examples").is_dir() else "examples"
