"""The Translator protocol, batching, and what a remote server is asked."""
