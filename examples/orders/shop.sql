-- The shop's own tables; its outbox comes from `debezium-inbox schema apply --target outbox`.
CREATE TABLE IF NOT EXISTS customers (
    customer_id uuid PRIMARY KEY
);

CREATE TABLE IF NOT EXISTS orders (
    order_id uuid PRIMARY KEY,
    customer_id uuid NOT NULL REFERENCES customers,
    sku text NOT NULL,
    quantity integer NOT NULL CHECK (quantity > 0),
    cancelled boolean NOT NULL DEFAULT false
);
