"""Projects: making one that needs no clone, and bringing one of an earlier version up to date."""
