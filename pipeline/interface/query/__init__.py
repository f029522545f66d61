"""Asking a published corpus questions: SQL, random samples, and what differs between two corpora."""
