"""A shop writes orders with their events; a warehouse and a loyalty programme apply them."""
