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
    else if (event.type === "retract") this.retract(event);
    else throw new Error(`unknown event type ${event.type}`);
    this.lastId = event.id;
    return true;
  }

  retract({ start, end, reason }) {
    const [by, kept] = [end - start, this.sentences.filter((s) => s.end <= start || s.start >= end)];
    this.retracted.push({ at: start, text: this.chars.splice(start, by).join(""), reason });
    this.sentences = kept.map((s) => (s.end <= start ? s : { ...s, start: s.start - by, end: s.end - by }));
  }
}
