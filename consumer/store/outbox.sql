-- name: insert
-- One event's row; the table's constraints refuse what the connector could not carry.
INSERT INTO {schema}.outbox (id, aggregate_type, aggregate_id, event_type, payload, headers)
VALUES (%(id)s, %(aggregate_type)s, %(aggregate_id)s, %(event_type)s, %(payload)s, %(headers)s);
