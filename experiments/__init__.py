"""The papers' tables, a file each: what is trained and judged on what, beside the papers' figures."""
