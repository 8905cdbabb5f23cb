-- name: lock
-- One apply at a time in this database; the others wait and then find nothing to do.
SELECT pg_advisory_xact_lock(hashtextextended('debezium-inbox schema', 0));

-- name: create_schema
CREATE SCHEMA IF NOT EXISTS {schema};

-- name: schema_exists
-- A name longer than Postgres keeps is cut as it was when the schema was made.
SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = %(schema)s::name);

-- name: set_search_path
SET LOCAL search_path TO {schema};

-- name: book_exists
-- From the catalogue, which every role may read, also without USAGE on the schema.
SELECT EXISTS (
  SELECT
  FROM pg_class
  JOIN pg_namespace ON pg_namespace.oid = relnamespace
  WHERE nspname = %(schema)s::name AND relname = 'debezium_inbox_migrations'
);

-- name: versions
SELECT version FROM {schema}.debezium_inbox_migrations WHERE target = %(target)s;
