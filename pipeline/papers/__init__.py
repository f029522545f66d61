"""Systems that only reproduce published experiments; run by `python -m experiments.programs`."""
