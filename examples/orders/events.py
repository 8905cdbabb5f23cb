"""The events that the shop publishes, as pydantic models."""

from uuid import UUID

from pydantic import BaseModel, PositiveInt


class CustomerRegistered(BaseModel):
    """A customer is known to the shop; aggregate `customer`."""

    customer_id: UUID


class OrderPlaced(BaseModel):
    """An order exists; aggregate `order`, its version 1."""

    order_id: UUID
    customer_id: UUID
    sku: str
    quantity: PositiveInt
    version: PositiveInt


class OrderCancelled(BaseModel):
    """An order is taken back; aggregate `order`, its last version."""

    order_id: UUID
    sku: str
    quantity: PositiveInt
    version: PositiveInt
