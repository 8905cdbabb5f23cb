-- The inbox: which events a consumer has applied, and how far it has read.
-- Names are unqualified: the tables are made in the first schema of the search_path.

-- Which files were applied. Inbox and outbox share it where they share a schema, so whichever comes
-- second finds it there. Not schema_migrations: other tools keep a table of that name.
CREATE TABLE IF NOT EXISTS debezium_inbox_migrations (
    target     text        NOT NULL,
    version    integer     NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (target, version)
);

-- One row an event and consumer, written in the transaction of the event's effect.
CREATE TABLE processed_events (
    consumer     text        COLLATE "C" NOT NULL,
    event_id     uuid        NOT NULL,
    processed_at timestamptz NOT NULL DEFAULT now(),
    -- consumer first: the time-ordered ids of one consumer then go to the index's right edge
    PRIMARY KEY (consumer, event_id)
) WITH (
    fillfactor = 100,                       -- rows are never updated
    autovacuum_vacuum_scale_factor = 0.02,  -- a prune's dead rows are cleared long before 20 %
    autovacuum_vacuum_insert_scale_factor = 0.05
);

-- What the pruner walks along, oldest first.
CREATE INDEX processed_events_by_age ON processed_events (consumer, processed_at);

-- How far a consumer has read each partition. A topic that is deleted and made again has another id.
CREATE TABLE consumer_positions (
    consumer    text        COLLATE "C" NOT NULL,
    topic_id    uuid        NOT NULL,
    partition   integer     NOT NULL CHECK (partition >= 0),
    topic       text        NOT NULL,
    next_offset bigint      NOT NULL CHECK (next_offset >= 0),
    updated_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (consumer, topic_id, partition)
) WITH (
    fillfactor = 10,                        -- updated with every batch: room for updates in place
    autovacuum_vacuum_scale_factor = 0,     -- a handful of rows, so count dead ones, not a share
    autovacuum_vacuum_threshold = 1000
);

-- A batch's claims, effects and positions commit whole. A row of open_batches is there only inside a
-- batch's transaction: it breaks the deferred foreign key until the batch's last statement deletes it,
-- so a COMMIT in between, however it is smuggled into a handler, fails and rolls everything back.
-- Without this, events that were claimed but not yet handled would be taken for duplicates: lost.
CREATE TABLE batch_is_finished (
    finished boolean PRIMARY KEY CHECK (finished)
);
INSERT INTO batch_is_finished VALUES (true);

CREATE UNLOGGED TABLE open_batches (
    backend  integer NOT NULL DEFAULT pg_backend_pid(),
    finished boolean NOT NULL DEFAULT false,
    CONSTRAINT a_batch_commits_whole FOREIGN KEY (finished) REFERENCES batch_is_finished
        DEFERRABLE INITIALLY DEFERRED
) WITH (
    autovacuum_vacuum_scale_factor = 0,     -- always empty to others, one dead row a batch
    autovacuum_vacuum_threshold = 1000
);

INSERT INTO debezium_inbox_migrations (target, version) VALUES ('inbox', 1);
