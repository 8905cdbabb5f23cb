"""Example services, small enough to read in five minutes each."""
