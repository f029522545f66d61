"""The papers' tables, one file each: what is trained and evaluated, with the papers' figures."""
