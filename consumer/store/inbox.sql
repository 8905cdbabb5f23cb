-- name: positions
-- How far these partitions have been applied.
SELECT topic_id, partition, next_offset
FROM {schema}.consumer_positions
JOIN unnest(%(topic_ids)s::uuid[], %(partitions)s::integer[]) AS asked (topic_id, partition)
  USING (topic_id, partition)
WHERE consumer = %(consumer)s;

-- name: open_batch
-- The same, inside a batch's transaction; from here on it can only commit when `close_batch` has run
-- (see schema/inbox).
WITH opened AS (INSERT INTO {schema}.open_batches DEFAULT VALUES)
SELECT topic_id, partition, next_offset
FROM {schema}.consumer_positions
JOIN unnest(%(topic_ids)s::uuid[], %(partitions)s::integer[]) AS asked (topic_id, partition)
  USING (topic_id, partition)
WHERE consumer = %(consumer)s;

-- name: claim
-- The ids that were not there before, each once. Sorted, because two workers that insert the same
-- ids in opposite order deadlock. An id that another transaction has claimed is waited for, so a
-- member of the group that lost a partition and does not know it yet cannot apply an event beside the
-- one that has it now.
INSERT INTO {schema}.processed_events (consumer, event_id)
SELECT %(consumer)s, event_id
FROM unnest(%(event_ids)s::uuid[]) AS event_id
ORDER BY event_id
ON CONFLICT DO NOTHING
RETURNING event_id;

-- name: close_batch
-- The batch may commit. Where its row is gone, the transaction that it was opened in has been ended;
-- then what stands here instead cannot commit either.
WITH closed AS (
  DELETE FROM {schema}.open_batches WHERE backend = pg_backend_pid() RETURNING backend
)
INSERT INTO {schema}.open_batches (backend)
SELECT pg_backend_pid() WHERE NOT EXISTS (SELECT FROM closed);

-- name: raise_positions
-- Positions move up, never down.
INSERT INTO {schema}.consumer_positions AS p (consumer, topic_id, partition, topic, next_offset)
SELECT %(consumer)s, new.topic_id, new.partition, new.topic, new.next_offset
FROM unnest(
  %(topic_ids)s::uuid[], %(partitions)s::integer[], %(topics)s::text[], %(next_offsets)s::bigint[]
) AS new (topic_id, partition, topic, next_offset)
ORDER BY new.topic_id, new.partition
ON CONFLICT (consumer, topic_id, partition) DO UPDATE
SET next_offset = EXCLUDED.next_offset, topic = EXCLUDED.topic, updated_at = now()
WHERE p.next_offset < EXCLUDED.next_offset;

-- name: session
-- Bounds for a consumer that hangs, where the user has set none: a stopped member's open transaction
-- must not hold the others for ever, and waiting for such a lock must not take us out of the group.
SELECT set_config(name, value, false)
FROM (VALUES ('lock_timeout', '10s'), ('idle_in_transaction_session_timeout', '5min'))
  AS bound (name, value)
WHERE current_setting(name) = '0';
