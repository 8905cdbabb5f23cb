-- name: slots
-- Logical slots as jsonb, so that one query serves Postgres 13 to 18, whose columns differ. Any role
-- may read this. pg_current_wal_lsn() raises on a standby; a standby that reads from an archive
-- replays what it never received.
WITH server AS (
  SELECT CASE WHEN pg_is_in_recovery()
    THEN greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())
    ELSE pg_current_wal_lsn()
  END AS lsn
)
SELECT
  to_jsonb(slot) AS facts,
  pg_wal_lsn_diff(server.lsn, slot.restart_lsn)::bigint AS retained_wal_bytes,
  pg_wal_lsn_diff(server.lsn, slot.confirmed_flush_lsn)::bigint AS delivery_lag_bytes
FROM pg_replication_slots AS slot, server
WHERE slot.slot_type = 'logical'
ORDER BY slot.slot_name;

-- name: holder
-- The walsender that holds a slot.
SELECT active_pid FROM pg_replication_slots WHERE slot_name = %(slot)s;
