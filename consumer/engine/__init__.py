"""The loop: poll, decode, claim, apply, commit, and only then the offset."""
