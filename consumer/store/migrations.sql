-- name: lock
-- One apply at a time in this database; the others wait and then find nothing to do.
SELECT pg_advisory_xact_lock(hashtextextended('debezium-inbox schema', 0));

-- name: create_schema
CREATE SCHEMA IF NOT EXISTS {schema};

-- name: schema_exists
SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = %(schema)s);

-- name: set_search_path
SET LOCAL search_path TO {schema};

-- name: book_exists
SELECT to_regclass(format('%%I.schema_migrations', %(schema)s::text)) IS NOT NULL;

-- name: versions
SELECT version FROM {schema}.schema_migrations WHERE target = %(target)s;
