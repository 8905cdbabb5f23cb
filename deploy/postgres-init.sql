-- The demo's databases and roles, as consumer/local/databases.py makes them. The passwords are for
-- this demo on this machine; the connector's role needs no right but these.
CREATE ROLE shop LOGIN PASSWORD 'shop';
CREATE ROLE warehouse LOGIN PASSWORD 'warehouse';
CREATE ROLE connector LOGIN REPLICATION PASSWORD 'connector';
CREATE DATABASE shop OWNER shop;
CREATE DATABASE warehouse OWNER warehouse;
