"""Translating with a language model behind a server: prompt, requests, answers."""
