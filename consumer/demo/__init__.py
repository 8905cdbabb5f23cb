"""The demo: the whole chain on this machine, a crash in the middle, and the books closed at the end."""
