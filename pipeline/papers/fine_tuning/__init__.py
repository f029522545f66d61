"""Encoders trained end to end for transfer tasks (Wieting 2016, 4.4)."""
