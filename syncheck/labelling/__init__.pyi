from .datasets import (
    labelled_responses as labelled_responses,
    load_jsonl as load_jsonl,
    load_records as load_records,
    load_unlabelled as load_unlabelled,
    unlabelled_responses as unlabelled_responses,
)
from .ragtruth import Selection as Selection, load_ragtruth as load_ragtruth
from .responses import (
    LabelledResponse as LabelledResponse,
    LabelledSentence as LabelledSentence,
    UnfaithfulSpan as UnfaithfulSpan,
    carried_line as carried_line,
    label_sentences as label_sentences,
)
from .sheet import (
    Agreement as Agreement,
    LabelSheet as LabelSheet,
    OpenSentence as OpenSentence,
    second_reading as second_reading,
)
