"""A section names a parameter that no longer exists, and what to do instead."""

from collections.abc import Mapping
from typing import ClassVar

import pytest
from pydantic import ValidationError

from paraforge.base.section import Section
from paraforge.interface.configuration import Parameters


class Small(Section):
    """A section that once had more."""

    removed: ClassVar[Mapping[str, str]] = {"old": "use new"}
    new: int = 1


def test_a_removed_parameter_says_what_to_do() -> None:
    assert Small.model_validate({"new": 2}).new == 2
    with pytest.raises(ValidationError, match="'old' was removed: use new"):
        Small.model_validate({"new": 2, "old": 3})


def test_a_parameter_that_never_existed_is_an_error_too() -> None:
    with pytest.raises(ValidationError, match="Extra inputs"):
        Small.model_validate({"other": 3})


def test_params_of_an_earlier_version_are_told() -> None:
    with pytest.raises(ValidationError, match="'smoothing' was removed: shrinkage is always used"):
        Parameters.model_validate({"lexicon": {"smoothing": "none"}})
