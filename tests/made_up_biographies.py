"""Biographies of made-up people, laid out as FActScore's; the second sentence of each is unfaithful."""

import json


def biography(name, number, **more):
    """One record; its two propositions are judged."""
    facts = f"{name} was born in {1900 + number}. {name} is a player."
    output = f"{name} was born in {1900 + number}. The farm has {number + 3} cows."
    propositions = [
        {"text": f"{name} was born in {1900 + number}.", "label": 1},
        {"text": f"The farm of {name} has {number + 3} cows.", "label": 0},
    ]
    ctxs = [{"title": name, "text": facts}, {"title": "Farms", "text": "A farm has a house."}]
    return {"topic": name, "ctxs": ctxs, "output": output, "propositions": propositions} | more


def write_biographies(path, names, **more):
    """Write a biography of each; ``more`` replaces fields, None leaves one out."""
    records = [biography(name, number, **more) for number, name in enumerate(names)]
    lines = [json.dumps({key: value for key, value in r.items() if value is not None}) + "\n" for r in records]
    path.write_text("".join(lines), encoding="utf-8")
    return path
