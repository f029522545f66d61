"""A section refuses what it does not know."""

import pytest
from pydantic import ValidationError

from paraforge.base.section import Section


class Small(Section):
    """A section with one parameter."""

    new: int = 1


def test_a_parameter_that_does_not_exist_is_an_error() -> None:
    assert Small.model_validate({"new": 2}).new == 2
    with pytest.raises(ValidationError, match="Extra inputs"):
        Small.model_validate({"other": 3})
