"""The program's version, and that of what each step gives for the same input.

dvc.yaml and the work directory's keys depend on the steps' numbers.

Raise a step's number whenever the same input and parameters would give another result. Literal numbers only:
DVC reads this file without running it.
"""

__version__ = "0.2.0"

INGEST = 9
NMT = 2
TRANSLATE = 4
PARAGRAM = 4
SCORE = 19
SELECT = 9
PUBLISH = 27
LEXICON = 2
STATISTICS = 7
PARSES = 1
PARAPHRASER = 3
TRIPLETS = 5
REPORT = 27
EMBEDDINGS = 12
DECODERS = 6
