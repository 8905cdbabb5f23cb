-- What the role of a service that publishes needs. The connector's role needs nothing here: with
-- REPLICATION it reads the WAL, and no table.
GRANT USAGE ON SCHEMA {schema} TO {role};
GRANT INSERT ON {schema}.outbox TO {role};
