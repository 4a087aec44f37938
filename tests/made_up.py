"""Labelled responses about made-up people: every second sentence says a number that the passage does not."""

from syncheck.labelling import LabelledResponse, UnfaithfulSpan

NAMES = ("Angus", "Walter", "Amna", "Denis", "Samuel", "Gilles", "Nora", "Ines")


def record(index, *, group=None, **options):
    name = NAMES[index % len(NAMES)]
    passage = f"{name} Scott was born in {1900 + index}. {name} Scott is a player in New South Wales."
    faithful = f" {name} Scott was born in {1900 + index}."
    unfaithful = f" The farm has {index + 3} cows."
    response = faithful + unfaithful + f" {name} Scott is a player."
    marked = UnfaithfulSpan(len(faithful) + 1, len(faithful) + len(unfaithful))
    values = {
        "id": f"r{index}",
        "question": f"Who is {name} Scott?",
        "passages": (passage,),
        "response": response,
        "group": group or f"g{index}",
        "generator": "made up",
        "spans": (marked,),
        **options,
    }
    return LabelledResponse(**values)


def records(count):
    return [record(index) for index in range(count)]
