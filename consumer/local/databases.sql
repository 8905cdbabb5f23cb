-- name: role_exists
SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = %(role)s);

-- name: create_role
CREATE ROLE {role} LOGIN PASSWORD {password};

-- name: create_connector_role
-- All that Debezium needs, given a publication: it reads the WAL and no table.
CREATE ROLE {role} LOGIN REPLICATION PASSWORD {password};

-- name: database_exists
SELECT EXISTS (SELECT FROM pg_database WHERE datname = %(database)s);

-- name: create_database
CREATE DATABASE {database} OWNER {owner};

-- name: close_database
-- By default every role may connect to every database.
REVOKE ALL ON DATABASE {database} FROM PUBLIC;

-- name: let_connect
GRANT CONNECT ON DATABASE {database} TO {role};
