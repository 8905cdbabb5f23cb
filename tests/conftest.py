"""Fixtures live in one file a subject; this file only names them."""

pytest_plugins = ["tests.fix_postgres", "tests.fix_stack", "tests.fix_bench", "tests.fix_leaks"]
