"""The SQL: the inbox, its positions, migrations; named queries in .sql files."""
