-- name: orders
SELECT count(*) FROM orders;

-- name: published
-- Every event that the shop committed, with the consumers' view of which they take.
SELECT id, aggregate_type, aggregate_id, event_type FROM {schema}.outbox;

-- name: stock_ledger
-- In the order in which it took effect.
SELECT event_id, order_id::text, version FROM stock_movements ORDER BY movement;

-- name: points_ledger
SELECT event_id, customer_id::text, 0 FROM point_movements ORDER BY movement;

-- name: reserved_by_shop
SELECT coalesce(sum(quantity) FILTER (WHERE NOT cancelled), 0) FROM orders;

-- name: reserved_in_stock
SELECT coalesce(sum(reserved), 0) FROM stock;
