"""What the tests of the reader's training share: its encoder of texts, and made-up groups of claims."""

import pytest
from made_up_claims import groups_by_source, reader_encoder


@pytest.fixture(scope="module")
def encoder():
    return reader_encoder()


@pytest.fixture
def groups():
    return groups_by_source()
