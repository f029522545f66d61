"""Systems that reproduce published experiments and nothing else; run by `python -m experiments.programs`."""
