"""DVC stages: each reads its section of params.yaml, calls the library and writes metrics."""
