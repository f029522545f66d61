"""The Translator protocol, batching, and support for engines."""
