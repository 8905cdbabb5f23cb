-- What the consumer's role needs, and nothing more: no DDL, and no DELETE, which is the pruner's.
GRANT USAGE ON SCHEMA {schema} TO {role};
GRANT SELECT ON {schema}.debezium_inbox_migrations TO {role};
GRANT SELECT, INSERT ON {schema}.processed_events TO {role};
GRANT SELECT, INSERT, DELETE ON {schema}.open_batches TO {role};
GRANT SELECT, INSERT, UPDATE ON {schema}.consumer_positions TO {role};
