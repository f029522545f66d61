"""Translation engines: the Translator protocol, batching, and the engines themselves."""
