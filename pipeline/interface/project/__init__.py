"""Projects: creating one that needs no clone of the repository, and upgrading one to this version."""
