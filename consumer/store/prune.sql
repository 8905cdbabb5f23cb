-- name: one_pruner
-- Two pruners would only wait for each other's rows.
SELECT pg_try_advisory_lock(hashtextextended('debezium-inbox prune ' || %(schema)s, 0));

-- name: topics
-- Which topics each consumer reads, by the positions it keeps.
SELECT consumer, array_agg(DISTINCT topic ORDER BY topic)
FROM {schema}.consumer_positions
GROUP BY consumer
ORDER BY consumer;

-- name: cutoff
-- By the database's clock, which also wrote processed_at.
SELECT now() - %(older_than)s::interval;

-- name: count
SELECT count(*)
FROM {schema}.processed_events
WHERE consumer = %(consumer)s AND processed_at < %(cutoff)s;

-- name: delete_batch
-- Oldest first along the index on (consumer, processed_at). Nobody updates these rows, and there is
-- one pruner, so nothing is locked that a consumer could wait for.
DELETE FROM {schema}.processed_events
WHERE ctid = ANY (ARRAY(
  SELECT ctid
  FROM {schema}.processed_events
  WHERE consumer = %(consumer)s AND processed_at < %(cutoff)s
  ORDER BY processed_at
  LIMIT %(batch)s
));
