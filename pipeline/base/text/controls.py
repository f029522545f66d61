"""Line breaks and control characters, which would break every line-oriented tool to come.

U+0085, U+2028 and U+2029 are text: nothing here splits lines at them.
"""

from __future__ import annotations

import re

# Patterns for RE2 and for Python: the characters themselves, as each spells those above U+007F differently.
BREAKS = "[\t\n\x0b\x0c\r]+"
CONTROLS = "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]"


def without_controls(text: str) -> str:
    """A text of one line: breaks and tabs become a space, control characters nothing."""
    return re.sub(CONTROLS, "", re.sub(BREAKS, " ", text))
