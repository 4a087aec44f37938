"""Check a text, watch the kit's model answer from passages, then let FOD answer: python examples/quickstart.py."""

from fod import FODGenerator
from syncheck import Verifier
from syncheck.kit import demo_questions, load_kit

question = demo_questions()[0]
print(question.question)

print("\ntext of any model, checked without a language model")
answer = "A copy of the script costs £11.80. Candidates and parents make the application themselves."
report = Verifier().check(question=question.question, passages=question.passages, answer=answer)
for sentence in report.sentences:
    print(f"  {sentence.score:.2f}  {sentence.verdict}: {sentence.text}")

monitor = load_kit("generation")
prompt = monitor.prompt(question=question.question, context=question.passages)

print("\ngreedy, scored while it is written")
for event in monitor.stream(prompt, max_new_tokens=80):
    if event.type == "sentence":
        print(f"  {event.sentence.score:.2f}  {event.sentence.text}")

print("\na plain generate, watched")
with monitor.attach(prompt) as watch:
    output = monitor.model.generate(**prompt.inputs(), logits_processor=watch.processors, max_new_tokens=80)
print(f"  lowest score: {watch.report(output).lowest.score:.2f}")

print("\nfaithfulness-oriented decoding")
fod = FODGenerator(monitor.model, monitor.tokenizer, monitor)
answer = fod.generate(prompt, max_new_tokens=80, return_dict_in_generate=True)
for sentence in answer.report.sentences:
    print(f"  {sentence.score:.2f}  {sentence.text}")
print(f"  taken back on the way: {len(answer.dropped)}")
