from .biographies import (
    Proposition as Proposition,
    label_by_propositions as label_by_propositions,
    load_biographies as load_biographies,
)
from .datasets import (
    labelled_responses as labelled_responses,
    load_jsonl as load_jsonl,
    load_records as load_records,
    load_unlabelled as load_unlabelled,
    unlabelled_responses as unlabelled_responses,
)
from .propositioners import (
    AutoAis as AutoAis,
    PropositionJudge as PropositionJudge,
    SupportJudge as SupportJudge,
    load_judge as load_judge,
)
from .responses import (
    carried_line as carried_line,
    label_sentences as label_sentences,
    labelled_sentences as labelled_sentences,
)
from .passages import Passage as Passage, load_passages as load_passages
from .planting import plant_error as plant_error
from .propositioners import (
    InstructPropositioner as InstructPropositioner,
    Propositioner as Propositioner,
    RuleBasedPropositioner as RuleBasedPropositioner,
    SequencePropositioner as SequencePropositioner,
    load_propositioner as load_propositioner,
)
from .ragtruth import load_ragtruth as load_ragtruth
from .responses import (
    LabelledResponse as LabelledResponse,
    LabelledSentence as LabelledSentence,
    Selection as Selection,
    UnfaithfulSpan as UnfaithfulSpan,
)
from .sheet import LabelSheet as LabelSheet, OpenSentence as OpenSentence
