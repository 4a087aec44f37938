"""A folder in RAGTruth's layout about made-up people: all three tasks, both splits, two generators."""

import json

TASKS = ("QA", "Summary", "Data2txt")
GENERATORS = ("llama-2-7b-chat", "mistral-7B-instruct")
NAMES = ("Angus", "Walter", "Amna", "Denis", "Samuel", "Gilles", "Nora", "Ines")


def write_ragtruth(folder, *, per_split):
    """Write as many sources for each task and split; every answer's second sentence is unfaithful.

    Of every other summary it is true of the world; of the overviews it comes from a null.
    """
    sources, responses = [], []
    for number in range(len(TASKS) * 2 * per_split):
        task, split = TASKS[number % 3], ("train", "test")[number // 3 % 2]
        sources.append(source(str(number), task, number))
        for generator in GENERATORS:
            responses.append(response(str(number), task, split, generator, number))
    (folder / "source_info.jsonl").write_text("".join(json.dumps(each) + "\n" for each in sources))
    (folder / "response.jsonl").write_text("".join(json.dumps(each) + "\n" for each in responses))
    return folder


def source(source_id, task, number):
    name = NAMES[number % len(NAMES)]
    facts = f"{name} Scott was born in {1900 + number}. {name} Scott is a player."
    found = {"source_id": source_id, "task_type": task, "source": "made up"}
    if task == "QA":
        info = {"question": f"who is {name} scott", "passages": f"passage 1:{facts}\n\npassage 2:A farm.\n\n"}
        return found | {"source_info": info}
    if task == "Summary":
        prompt = f"Summarize the following news within 20 words:\n{facts}\noutput:"
        return found | {"source_info": facts, "prompt": prompt}
    review = {"review_stars": 4.0, "review_text": facts}
    business = {"name": f"Café {name}", "attributes": {"WiFi": "no", "Music": None}, "review_info": [review]}
    return found | {"source_info": business}


def response(source_id, task, split, generator, number):
    name = NAMES[number % len(NAMES)]
    text = f"{name} Scott was born in {1900 + number}. The farm has {number + 3} cows."
    start = text.index("The farm")
    label = {
        "start": start,
        "end": len(text),
        "implicit_true": task == "Summary" and number % 4 == 1,
        "due_to_null": task == "Data2txt",
        "label_type": "Evident Baseless Info",
    }
    return {
        "id": f"{source_id}-{generator}",
        "source_id": source_id,
        "model": generator,
        "labels": [label],
        "split": split,
        "quality": "truncated" if number % 8 == 7 else "good",
        "response": text,
    }
