-- The outbox: events, written in the transaction of the change that they tell of.
-- Names are unqualified: the table is made in the first schema of the search_path.
--
-- The connector stops for good at a row that it cannot carry, and everything behind that row waits;
-- no connector setting gets past it. So such a row is refused here, by a constraint whose name says why.

DO $$
BEGIN
    IF current_setting('server_encoding') <> 'UTF8' THEN
        RAISE EXCEPTION 'Debezium reads only databases in UTF8; this one is in %',
            current_setting('server_encoding');
    END IF;
END
$$;

-- As in schema/inbox: which files were applied.
CREATE TABLE IF NOT EXISTS debezium_inbox_migrations (
    target     text        NOT NULL,
    version    integer     NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (target, version)
);

CREATE TABLE outbox (
    id             uuid        PRIMARY KEY,
    aggregate_type text        NOT NULL,
    aggregate_id   text        NOT NULL,
    event_type     text        NOT NULL,
    payload        jsonb       NOT NULL,
    headers        jsonb,
    -- clock_timestamp() and not now(): the time of the event, not of its transaction's start. It is
    -- also volatile, so a COPY that leaves it out writes one WAL record a row; Debezium 3.6 loses rows
    -- that share one.
    created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),

    -- The topic is 'outbox.' and this. Kafka allows 249 characters. A dot is refused because Kafka
    -- makes no topic 'outbox.a.b' where there is an 'outbox.a_b'.
    CONSTRAINT outbox_aggregate_type_is_no_topic_name
        CHECK (aggregate_type ~ '^[A-Za-z0-9_-]+\Z' AND length(aggregate_type) <= 242),
    -- The key of the record: events of one key keep their order.
    CONSTRAINT outbox_aggregate_id_is_empty CHECK (aggregate_id <> ''),
    -- A consumer finds the method for an event by its type.
    CONSTRAINT outbox_event_type_is_empty CHECK (event_type <> ''),
    CONSTRAINT outbox_headers_are_no_object CHECK (jsonb_typeof(headers) = 'object'),
    -- A time that ISO 8601 can say; infinity is none.
    CONSTRAINT outbox_created_at_is_out_of_range
        CHECK (created_at >= '1970-01-01 00:00:00+00' AND created_at < '10000-01-01 00:00:00+00'),
    -- The one bound on an event's size. The connector's producer.override.max.request.size and the
    -- topics' max.message.bytes are 48,576 bytes larger, which is room for the record's own framing.
    CONSTRAINT outbox_record_is_larger_than_kafka_takes
        CHECK (octet_length(aggregate_type) + octet_length(aggregate_id) + octet_length(event_type)
               + octet_length(payload::text) + coalesce(octet_length(headers::text), 0) <= 1000000)
);

-- Only inserts travel: deleting old rows later is no event.
CREATE PUBLICATION outbox FOR TABLE outbox
    WITH (publish = 'insert', publish_via_partition_root = true);

INSERT INTO debezium_inbox_migrations (target, version) VALUES ('outbox', 1);
