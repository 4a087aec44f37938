"""Recording hidden states: what is nested goes to the inner record, and nothing is recorded after."""

import torch

from syncheck.signals import Taps
from syncheck.testing import scripted_monitor


def test_a_nested_recording_gives_back_to_the_one_around_it():
    model = scripted_monitor("It has two lanes.").model
    ids = torch.tensor([[1, 2]])
    taps = Taps(model, (0,))
    with taps.attached():
        with taps.recording() as outer:
            with taps.recording() as inner:
                model(input_ids=ids)
            assert taps.is_recording
            model(input_ids=ids)
        model(input_ids=ids)
    assert (len(inner[0]), len(outer[0])) == (1, 1)
    assert not taps.is_recording
