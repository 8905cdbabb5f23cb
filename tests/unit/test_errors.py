"""The tree of errors."""

from consumer.errors import InboxError


def test_errors_of_the_framework_are_one_tree() -> None:
    """Everything raised on purpose is an InboxError with a code of its own."""
    found = [InboxError]
    for each in found:
        found += each.__subclasses__()
    codes = [each.code for each in found]
    assert len(set(codes)) == len(codes)
