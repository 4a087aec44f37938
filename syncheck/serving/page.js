// The page of the server: asks it, folds its events, and shows each sentence with its verdict and its source.
import { FoldedAnswer } from "./client.js";

const [form, answers, sources] = ["ask", "answers", "sources"].map((id) => document.getElementById(id));
const stop = document.getElementById("stop");
const field = (name) => form.elements[name];
let about = { decoders: [], examples: [], needs_key: false };
let running = null;

function node(tag, { text, ...attributes } = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...(text === undefined ? children : [text]));
  return made;
}

const passagesOf = (text) => text.split(/\n\s*\n/).map((part) => part.trim()).filter(Boolean);

function showPassages(passages, lit = null) {
  sources.replaceChildren(...passages.map((passage, index) => {
    const shown = node("div", { class: "passage" }, node("h2", { text: `Passage ${index + 1}` }));
    if (lit?.passage !== index) shown.append(passage);
    else {
      shown.classList.add("lit");
      const chars = [...passage];
      const [start, end] = lit.start === null ? [0, chars.length] : [lit.start, lit.end];
      shown.append(chars.slice(0, start).join(""), node("mark", { text: chars.slice(start, end).join("") }),
        chars.slice(end).join(""));
    }
    return shown;
  }));
  sources.querySelector("mark")?.scrollIntoView({ block: "nearest" });
}

const REMARKS = { says_not_stated: "It says that something is not stated.", no_passage_touches: "No passage holds any of its words.", passages_not_read: "A passage is in a language that the aligner does not read." };

function contrastWords({ passage, sentence, evidence }) {
  const source = `Passage ${passage + 1}`;
  if (!sentence) return `${source} says “${evidence}”, the sentence does not.`;
  return evidence ? `${source} says “${evidence}”, not “${sentence}”.` : `${source} does not say “${sentence}”.`;
}

const CITED = { supported: "supports it", misattributed: "does not support it", fabricated: "does not exist", unresolved: "could not be checked" };

function citationWords({ marker, passage, status, better }) {
  const instead = better === null ? "" : `; passage ${better + 1} does`;
  return `${marker} ${status}: ${passage === null ? "its source" : `passage ${passage + 1}`} ${CITED[status]}${instead}`;
}

// One answer: a card that is drawn anew after each event.
class Card {
  constructor(title, passages) {
    this.passages = passages;
    this.answer = new FoldedAnswer();
    this.selected = null;
    this.text = node("div", { class: "text" });
    this.why = node("div", { class: "why", "aria-live": "polite" });
    this.status = node("p", { class: "status", role: "status", text: "waiting" });
    this.notices = node("div");
    this.card = node("article", { "aria-label": title }, node("h2", { text: title }), this.status, this.text, this.why, this.notices);
    this.text.addEventListener("click", (event) => this.choose(event.target.closest(".sentence")));
    this.text.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      this.choose(event.target.closest(".sentence"));
    });
  }

  draw() {
    const { chars, sentences, retracted } = this.answer;
    const focused = this.text.contains(document.activeElement) ? document.activeElement.dataset.start : null;
    const parts = [];
    let at = 0;
    const gone = [...retracted].sort((a, b) => a.at - b.at);
    const plain = (end, kind) => {
      const text = chars.slice(at, end).join("");
      if (text) parts.push(kind === "pending" && text.trim() ? node("span", { class: kind, text }) : text);
      at = end;
    };
    const struck = (end) => {
      while (gone.length && gone[0].at <= end) {
        const { text, reason } = gone.shift();
        if (text.trim()) parts.push(" ", node("del", { text: text.trim(), title: reason }), " ");
      }
    };
    for (const sentence of [...sentences].filter((s) => s.end <= chars.length).sort((a, b) => a.start - b.start)) {
      struck(sentence.start - 1);
      plain(sentence.start, "pending");
      parts.push(this.sentence(sentence, chars.slice(sentence.start, sentence.end).join("")));
      const wrong = this.citations(sentence).filter(({ status }) => status !== "supported");
      if (wrong.length) parts.push(node("small", { class: "cited", text: ` ${wrong.map(({ marker, status }) => `${marker} ${status}`).join(", ")}` }));
      at = sentence.end;
    }
    struck(at);
    plain(chars.length, "pending");
    struck(Infinity);
    this.text.replaceChildren(...parts);
    if (focused !== null) this.text.querySelector(`[data-start="${focused}"]`)?.focus({ preventScroll: true });
    this.notices.replaceChildren(...this.answer.notices.map(({ text, kind }) =>
      node("p", { class: kind === "warning" ? "notice failed" : "notice", text })));
  }

  // Citations of a sentence, which are checked once the answer is complete.
  citations({ start }) { return this.answer.report?.sentences.find((one) => one.start === start)?.citations ?? []; }

  sentence({ start, score, verdict, status }, text) {
    const said = score === null ? status.replaceAll("_", " ") : `${verdict ?? "scored"}, ${score.toFixed(2)}`;
    return node("span", { class: `sentence ${verdict ?? "unchecked"}`, role: "button", tabindex: "0", "data-start": start,
      title: said, "aria-label": `${text} (${said})`, "aria-pressed": String(start === this.selected), text });
  }

  choose(chosen) {
    if (!chosen) return;
    const sentence = this.answer.sentences.find(({ start }) => String(start) === chosen.dataset.start);
    for (const other of answers.querySelectorAll("[aria-pressed=true]")) other.setAttribute("aria-pressed", "false");
    chosen.setAttribute("aria-pressed", "true");
    this.selected = sentence.start;
    const { verdict, score, status, reason, evidence: [cited], remarks = [], contrasts = [] } = sentence;
    const head = score === null ? `Not scored: ${reason ?? status.replaceAll("_", " ")}` : `${verdict ?? "scored"}, ${score.toFixed(2)}`;
    const said = [...remarks.map((remark) => REMARKS[remark] ?? remark), ...new Set(contrasts.map(contrastWords))];
    if (cited) said.push(`Nearest in passage ${cited.passage + 1} (support ${cited.support.toFixed(2)}): “${cited.text}”`);
    for (const other of answers.querySelectorAll(".why")) other.replaceChildren();
    this.why.append(node("strong", { class: verdict ?? "unchecked", text: head }), ...said.map((text) => node("p", { text })));
    for (const one of this.citations(sentence)) this.why.append(node("p", {}, this.citation(one, cited)));
    showPassages(this.passages, cited ?? null);
  }

  // A citation in words; where it names a passage, a button that shows that.
  citation(one, evidence) {
    if (one.passage === null) return citationWords(one);
    const shown = node("button", { type: "button", class: `cited ${one.status}`, text: citationWords(one) });
    const lit = evidence?.passage === one.passage ? evidence : { passage: one.passage, start: null };
    shown.addEventListener("click", () => { showPassages(this.passages, lit); sources.querySelector(".lit").scrollIntoView({ block: "nearest" }); });
    return shown;
  }

  async follow(body, headers, signal) {
    this.status.textContent = "writing";
    const response = await fetch("v1/chat/completions", { method: "POST", headers, body: JSON.stringify(body), signal });
    if (!response.ok) throw new Error((await response.json().catch(() => null))?.error?.message ?? response.statusText);
    await this.read(response.body.pipeThrough(new TextDecoderStream()).getReader());
    if (!this.isWhole) throw new Error("the connection broke");
  }

  async read(reader) {
    for (let rest = "", { done, value } = await reader.read(); !done; { done, value } = await reader.read()) {
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines) if (line.startsWith("data:")) this.take(line.slice(5).trim());
    }
  }

  checked() {
    const { length } = this.answer.sentences;
    return `${length} sentence${length === 1 ? "" : "s"} checked`;
  }

  take(data) {
    if (data === "[DONE]") { this.isWhole = true; return; }
    const chunk = JSON.parse(data);
    if (chunk.error) throw new Error(chunk.error.message);
    for (const { syncheck = {}, finish_reason: finish } of chunk.choices ?? []) {
      for (const event of syncheck.events ?? []) this.answer.take(event);
      const checked = this.checked();
      const lowest = syncheck.lowest == null ? "" : `, lowest score ${syncheck.lowest.toFixed(2)}`;
      const why = ["no_text", "unverified"].includes(syncheck.status) && syncheck.reason ? `; ${syncheck.reason}` : "";
      this.status.textContent = finish ? `${["verified", "checked"].includes(syncheck.status) ? "done" : syncheck.status.replace("_", " ")}: ${checked}${lowest}${why}` : checked;
    }
    this.draw();
  }

  fail(error) {
    this.status.textContent = error.name === "AbortError" ? "stopped" : error.message;
    this.status.classList.toggle("failed", error.name !== "AbortError");
  }
}

async function ask() {
  running?.abort();
  const { signal } = (running = new AbortController());
  const [question, passages] = [field("question").value.trim(), passagesOf(field("passages").value)];
  const isOwn = about.decoders.length > 0;
  const chosen = isOwn ? [...form.querySelectorAll("[name=decoder]:checked")].map((box) => box.value) : [null];
  const content = isOwn ? question :
    `${passages.map((passage, i) => `Passage ${i + 1}: ${passage}`).join("\n\n")}\n\nQuestion: ${question}`;
  const headers = { "Content-Type": "application/json" };
  if (field("key").value) headers.Authorization = `Bearer ${field("key").value}`;
  const cards = chosen.map((decoder) => new Card(decoder ?? "Answer", passages));
  answers.replaceChildren(...cards.map(({ card }) => card));
  showPassages(passages);
  stop.disabled = false;
  await Promise.all(cards.map((card, index) => card.follow({
    model: field("model").value, messages: [{ role: "user", content }], context: passages, stream: true,
    ...(isOwn && { decoder: chosen[index] }), syncheck: { reveal: field("reveal").value },
  }, headers, signal).catch((error) => card.fail(error))));
  if (running?.signal === signal) stop.disabled = true;
}

function showExample({ question, passages }) {
  field("question").value = question;
  field("passages").value = passages.join("\n\n");
}

async function start() {
  about = await (await fetch("page.json")).json();
  document.getElementById("about").textContent = about.title;
  document.getElementById("key").hidden = !about.needs_key;
  document.getElementById("models").hidden = about.decoders.length > 0;
  document.getElementById("examples").hidden = !about.examples.length;
  document.getElementById("decoders").hidden = !about.decoders.length;
  for (const [index, { question }] of about.examples.entries()) field("example").append(node("option", { value: index, text: question }));
  const ticked = new Set([about.decoders[0], about.decoders.includes("fod") ? "fod" : about.decoders[1]]);
  for (const name of about.decoders) {
    const box = node("input", { type: "checkbox", name: "decoder", value: name });
    box.checked = ticked.has(name);
    document.getElementById("decoders").append(node("label", {}, box, name));
  }
  if (about.examples.length) showExample(about.examples[0]);
  if (!about.decoders.length && !about.needs_key) {
    const models = await fetch("v1/models").then((response) => response.json()).catch(() => ({}));
    field("model").value = models.data?.[0]?.id ?? "";
  }
}

field("example").addEventListener("change", (event) => showExample(about.examples[event.target.value]));
form.addEventListener("submit", (event) => { event.preventDefault(); ask(); });
stop.addEventListener("click", () => { running?.abort(); stop.disabled = true; });
await start();
