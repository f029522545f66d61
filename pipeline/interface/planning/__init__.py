"""Forecasts what a translation will cost."""
