// Folds the events of docs/protocol.md into an answer. Offsets count characters (code points), not UTF-16 units.
export const VERSION = 1;

export class FoldedAnswer {
  chars = [];
  lastId = 0;
  sentences = [];
  notices = [];
  retracted = []; // {at, text, reason}: for a page that strikes it through
  report = null;

  get text() { return this.chars.join(""); }

  take(event) {
    if (event.v !== VERSION) throw new Error(`expected events of version ${VERSION}, found ${event.v}`);
    if (event.id > this.lastId + 1) throw new Error(`expected event ${this.lastId + 1}, found ${event.id}`);
    if (event.id <= this.lastId) return false;
    if (event.type === "append") for (const char of event.text) this.chars.push(char);
    else if (event.type === "verified") this.sentences.push(event);
    else if (event.type === "notice") this.notices.push(event);
    else if (event.type === "final") this.report = event.report;
    else if (event.type === "retract" || event.type === "replace") this.splice(event);
    else throw new Error(`unknown event type ${event.type}`);
    this.lastId = event.id;
    return true;
  }

  splice({ start, end, text = "", reason = "replaced" }) {
    const [added, kept] = [[...text], this.sentences.filter((s) => s.end <= start || s.start >= end)];
    const removed = this.chars.splice(start, end - start, ...added);
    const by = added.length - (end - start);
    this.retracted.push({ at: start, text: removed.join(""), reason });
    this.sentences = kept.map((s) => (s.end <= start ? s : { ...s, start: s.start + by, end: s.end + by }));
  }
}

// Reads server-sent events into the answer until the final one; goes on after answer.lastId when the stream breaks off.
export async function follow(url, { answer = new FoldedAnswer(), onEvent = () => {}, retries = 5, ...options } = {}) {
  for (let failed = 0; ; ) {
    const [known, headers] = [answer.lastId, { ...options.headers, "Last-Event-ID": String(answer.lastId) }];
    try {
      const response = await fetch(url, { ...options, headers });
      if (!response.ok) throw new Error(`${response.status} ${response.statusText}`);
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let rest = "", { done, value } = await reader.read(); !done; { done, value } = await reader.read()) {
        const lines = (rest + value).split("\n");
        rest = lines.pop();
        for (const event of lines.filter((line) => line.startsWith("data:")).map((line) => JSON.parse(line.slice(5))))
          if (event.error) throw new Error(event.error.message);
          else if (answer.take(event)) onEvent(event, answer);
      }
    } catch (error) {
      if (!(error instanceof TypeError)) throw error; // fetch throws TypeErrors where the network fails
    }
    if (answer.report) return answer;
    failed = answer.lastId > known ? 0 : failed + 1;
    if (failed > retries) throw new Error(`the stream broke off ${failed} times after event ${answer.lastId}`);
    await new Promise((done) => setTimeout(done, Math.min(100 * 2 ** failed, 5000)));
  }
}
