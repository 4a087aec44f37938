"""A double of vLLM's chat completions over a small model: the same chunks, without the server."""

import json

import httpx
import torch
from transformers import DynamicCache

END = "<|im_end|>"


class VllmDouble(httpx.AsyncBaseTransport):
    """Writes greedily what a model writes after one prompt, in chunks as those of vLLM 0.32.

    The first chunk has a role and no token, a later one may have several tokens, and the last has the token of the end,
    whose text is not in the content. Usage comes with each chunk, and what came from the cache only at the end. Ids of
    what the server has written or told are kept, so that it reads a beginning as the tokens that it has told.
    """

    def __init__(self, model, tokenizer, prompt_ids, *, limit=80, tells=True, several=2):
        self.model, self.tokenizer, self.prompt_ids = model, tokenizer, list(prompt_ids)
        self.limit, self.tells, self.several = limit, tells, several
        self.requests, self.known = [], {"": ()}
        self.cache, self.read = DynamicCache(), []
        ends = model.generation_config.eos_token_id
        self.ends = set(ends if isinstance(ends, list) else [ends])

    async def handle_async_request(self, request):
        body = json.loads(await request.aread())
        self.requests.append(body)
        return httpx.Response(
            200, headers={"content-type": "text/event-stream"}, content=b"".join(map(_event, self.chunks(body)))
        )

    def chunks(self, body):
        last = body["messages"][-1]
        text = last["content"] if last["role"] == "assistant" else ""
        ids = list(self.known.get(text) or self.tokenizer(text, add_special_tokens=False).input_ids)
        yield self.chunk({"role": "assistant", "content": ""}, None, None, 0)
        content, told, stop, count = "", [], None, 0
        while stop is None:
            log_probs = self.next_log_probs(ids)
            token = int(log_probs.argmax())
            count += 1
            if body.get("logprobs"):
                told.append(self.told(token, log_probs, body["top_logprobs"], text, ids))
            if token in self.ends:
                stop = "stop"
            else:
                ids.append(token)
                word = self.tokenizer.decode([token])
                text, content = text + word, content + word
                if count >= body.get("max_tokens", self.limit - len(ids) + count):
                    stop = "length"
            if stop or count % self.several == 0:
                logprobs = {"content": told} if self.tells and told else None
                yield self.chunk({"content": content}, logprobs, stop, count)
                content, told = "", []
        usage = {"prompt_tokens": 10, "completion_tokens": count, "prompt_tokens_details": {"cached_tokens": 8}}
        yield {"choices": [], "usage": usage}

    def next_log_probs(self, ids):
        ids = [*self.prompt_ids, *ids]
        same = next((n for n, (a, b) in enumerate(zip(self.read, ids, strict=False)) if a != b), len(self.read))
        kept = min(same, len(ids) - 1)
        if kept < len(self.read):
            self.cache.crop(kept - len(self.read))
        with torch.inference_mode():
            out = self.model(input_ids=torch.tensor([ids[kept:]]), past_key_values=self.cache, use_cache=True)
        self.read = ids
        return out.logits[0, -1].float().log_softmax(-1)

    def told(self, token, log_probs, likeliest, text, ids):
        top = []
        for other in log_probs.topk(likeliest).indices.tolist():
            self.known[text + self.word(other)] = (*ids, other)
            top.append(self.entry(other, log_probs))
        return {**self.entry(token, log_probs), "top_logprobs": top}

    def word(self, token):
        return END if token in self.ends else self.tokenizer.decode([token])

    def entry(self, token, log_probs):
        word = self.word(token)
        return {"token": word, "logprob": float(log_probs[token]), "bytes": list(word.encode())}

    @staticmethod
    def chunk(delta, logprobs, stop, count):
        choice = {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": stop}
        return {"choices": [choice], "usage": {"prompt_tokens": 10, "completion_tokens": count}}


def _event(values):
    return f"data: {json.dumps(values)}\n\n".encode()
