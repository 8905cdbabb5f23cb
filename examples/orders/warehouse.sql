-- The consumers' own tables; the inbox comes from `debezium-inbox schema apply --target inbox`.
-- Movements are a ledger without a unique key: an event applied twice would stand there twice.
CREATE TABLE IF NOT EXISTS stock (
    sku text PRIMARY KEY,
    reserved integer NOT NULL
);

CREATE TABLE IF NOT EXISTS stock_movements (
    movement bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id uuid NOT NULL,
    order_id uuid NOT NULL,
    version integer NOT NULL,
    quantity integer NOT NULL
);

CREATE TABLE IF NOT EXISTS points (
    customer_id uuid PRIMARY KEY,
    balance integer NOT NULL
);

CREATE TABLE IF NOT EXISTS point_movements (
    movement bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id uuid NOT NULL,
    customer_id uuid NOT NULL,
    points integer NOT NULL
);
