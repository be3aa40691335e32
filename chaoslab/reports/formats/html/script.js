"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const words = data.words;
  const trials = new Map(data.trials.map((trial) => [trial.key, trial]));
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;

  // As base/durations.py tells them.
  function seconds(value) {
    const size = Math.abs(value);
    if (size === 0) return "0 s";
    if (size < 1e-6) return "below 1 µs";
    if (size < 1e-4) return `${(value * 1e6).toFixed(0)} µs`;
    return size < 0.01 ? `${(value * 1000).toFixed(1)} ms` : `${value.toFixed(3)} s`;
  }
  const where = (file, line) => `${words[file]} line ${line}`;

  // The timeline of a trial.

  const LEFT = 108, LETTER = 6.8, ROW = 34, TOP = 26, EDGE = 16, NEAR = 15;

  function rowsOf(trial) {
    return trial.events.map(([t, lane, kind, lasted, tone, text, file, line], number) => ({
      number, t, lasted, tone, file, line, lane: words[lane], kind: words[kind], text: words[text],
    }));
  }
  function lanesOf(events) {
    const found = [...new Set(events.map((event) => event.lane))];
    const order = (lane) => ({ agent: 0, model: 1, faults: 3, effects: 4 })[lane] ?? 2;
    for (const lane of ["agent", "faults", "effects"]) if (!found.includes(lane)) found.push(lane);
    return found.sort((a, b) => order(a) - order(b));
  }

  // Names that fit. A long one is cut in its middle; those that would then look alike, where they begin to differ.
  function apart(names, most) {
    const tail = Math.floor(most / 3), room = most - tail - 1;
    const cut = names.map((name) => (name.length > most ? `${name.slice(0, room)}…${name.slice(-tail)}` : name));
    return names.map((name, n) => {
      const family = names.filter((other, m) => cut[m] === cut[n]);
      if (family.length < 2 || name.length <= most) return cut[n];
      let at = 0;
      while (family.every((other) => other[at] === family[0][at])) at += 1;
      let word = at; // a number or word is shown whole
      while (word && /[\p{L}\p{N}]/u.test(name[word - 1])) word -= 1;
      const rest = name.slice(word || at);
      return `${name.slice(0, tail)}…${rest.length > room ? `${rest.slice(0, room - 1)}…` : rest}`;
    });
  }

  class Timeline {
    constructor(trial, events, choose) {
      this.events = events;
      this.marks = events.filter((event) => event.kind !== "call" || !this.ends(event));
      this.choose = choose;
      this.lanes = lanesOf(events);
      this.end = Math.max(...events.map((event) => event.t), 1e-6);
      this.low = 0;
      this.high = 1;
      this.byOrder = this.isCrowded();
      this.label = `Timeline of ${trial.key}: ${this.marks.length} events on the lanes ${this.lanes.join(", ")}. ` +
        "The table below holds the same.";
      this.box = make("div", { class: "plot", tabindex: "0", role: "group", "aria-label":
        "Timeline; the keys plus, minus, 0 and the arrows zoom and move it" });
      this.box.addEventListener("keydown", (event) => this.onKey(event));
      this.box.addEventListener("wheel", (event) => {
        if (!event.ctrlKey) return;
        event.preventDefault();
        this.zoom(event.deltaY < 0 ? 0.7 : 1 / 0.7);
      }, { passive: false });
    }
    ends(call) {
      const place = call.text.split(" ", 2).join(" ");
      return this.events.some((other) => other.kind === "result" && other.number > call.number &&
        other.text.startsWith(`${place} `));
    }
    isCrowded() {
      const near = this.marks.filter((event, n) => n && (event.t - this.marks[n - 1].t) / this.end < 0.012).length;
      return near > this.marks.length / 2;
    }
    onKey(event) {
      const act = {
        "+": () => this.zoom(0.7), "=": () => this.zoom(0.7), "-": () => this.zoom(1 / 0.7), "0": () => this.whole(),
        ArrowLeft: () => this.move(-0.2), ArrowRight: () => this.move(0.2),
      }[event.key];
      if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      act();
    }
    zoom(factor) {
      const middle = (this.low + this.high) / 2, half = Math.min(0.5, Math.max(1e-6, (this.high - this.low) * factor / 2));
      this.low = Math.min(Math.max(0, middle - half), 1 - 2 * half);
      this.high = this.low + 2 * half;
      this.render();
    }
    move(share) {
      const step = (this.high - this.low) * share;
      const by = Math.max(-this.low, Math.min(1 - this.high, step));
      this.low += by;
      this.high += by;
      this.render();
    }
    whole() {
      this.low = 0;
      this.high = 1;
      this.render();
    }
    share(event) {
      if (!this.byOrder) return event.t / this.end;
      return (this.marks.indexOf(event) + 0.5) / this.marks.length;
    }
    begin(event) {
      if (!event.lasted) return this.share(event);
      if (!this.byOrder) return Math.max(0, event.t - event.lasted) / this.end;
      return this.share(event) - 0.35 / this.marks.length;
    }
    x(share) {
      return this.left + EDGE + ((share - this.low) / (this.high - this.low)) * (this.width - this.left - 2 * EDGE);
    }
    render() {
      this.width = Math.max(this.box.clientWidth || 900, this.marks.length > 16 ? 560 : 320);
      const longest = Math.max(...this.lanes.map((lane) => lane.length));
      this.left = Math.min(Math.max(LEFT, longest * LETTER + 20), Math.max(LEFT, this.width * 0.3));
      const names = apart(this.lanes, Math.floor((this.left - 12) / LETTER));
      const height = TOP + ROW * this.lanes.length + 30;
      const svg = draw("svg", { width: this.width, height, viewBox: `0 0 ${this.width} ${height}`, role: "img",
        "aria-label": this.label });
      this.axis(svg, height);
      this.lanes.forEach((lane, n) => {
        const y = TOP + ROW * n + ROW / 2;
        svg.append(draw("line", { class: "lane", x1: this.left, x2: this.width, y1: y, y2: y }));
        const name = draw("text", { x: 8, y: y + 4 }, names[n]);
        name.append(draw("title", {}, lane));
        svg.append(name);
      });
      const clip = draw("g", {});
      const used = new Map();
      for (const event of this.marks) this.mark(clip, event, used);
      svg.append(clip);
      this.box.replaceChildren(svg);
    }
    axis(svg, height) {
      const bottom = height - 24, wanted = Math.max(2, Math.floor((this.width - this.left) / 110));
      const ticks = [];
      let told = seconds;
      if (this.byOrder) {
        const every = Math.ceil(this.marks.length * (this.high - this.low) / wanted) || 1;
        this.marks.forEach((event, n) => { if (n % every === 0) ticks.push([this.share(event), event.t]); });
      } else {
        const span = (this.high - this.low) * this.end;
        const rough = span / wanted, power = 10 ** Math.floor(Math.log10(rough));
        const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
        if (step > 1e-6 && step < 1e-4) told = (t) => `${(t * 1e6).toFixed(0)} µs`; // a digit of ms says some of them twice
        for (let n = Math.ceil((this.low * this.end) / step); n * step <= this.high * this.end * 1.000001; n += 1)
          ticks.push([(n * step) / this.end, n * step]);
      }
      for (const [share, t] of ticks) {
        if (share < this.low || share > this.high) continue;
        const x = this.x(share);
        svg.append(draw("line", { class: "tick", x1: x, x2: x, y1: TOP - 8, y2: bottom }));
        svg.append(draw("text", { class: "dim", x, y: height - 8, "text-anchor": "middle" }, told(t)));
      }
      svg.append(draw("text", { class: "dim", x: 8, y: 16 }, this.byOrder ? "in order" : data.unit));
    }
    mark(svg, event, used) {
      const share = this.share(event);
      if (share < this.low - 1e-9 || this.begin(event) > this.high + 1e-9) return;
      const lane = this.lanes.indexOf(event.lane);
      const y = TOP + ROW * lane + ROW / 2;
      let right = Math.min(this.x(share), this.width - 2);
      const left = Math.max(this.x(this.begin(event)), this.left);
      if (!event.lasted || right - left < 8) {
        const last = used.get(event.lane) ?? -1e9; // marks of one lane that would cover each other stand side by side
        if (right < last + NEAR && right > last - 4 * NEAR) right = last + NEAR;
        used.set(event.lane, right);
      }
      const bad = event.tone === 1;
      const style = event.lane === "faults" ? "fault" : event.lane === "effects" ? "effect"
        : event.lane === "agent" ? (bad ? "failed" : event.tone === 2 ? "good" : "agent") : bad ? "failed" : "call";
      const shape = this.shape(event, bad, left, right, y);
      shape.setAttribute("class", `mark ${style}`);
      shape.append(draw("title", {}, `${seconds(event.t)} ${event.kind} ${event.text}`));
      shape.addEventListener("click", () => this.choose(event.number));
      if (style === "fault") {
        const target = this.lanes.indexOf(event.text.split(" ", 1)[0]);
        if (target >= 0) svg.append(draw("path", { class: "link",
          d: `M${right} ${y - 8} L${right} ${TOP + ROW * target + ROW / 2 + 8}` }));
      }
      event.shape = shape;
      svg.append(shape);
      if (bad && event.lane !== "faults")
        svg.append(draw("text", { x: right + (event.lasted && right - left >= 8 ? -12 : 8), y: y - 9, class: "dim" }, "✖"));
    }
    shape(event, bad, left, right, y) {
      if (event.lane === "faults") return draw("path", { d: `M${right} ${y - 8}l8 8l-8 8l-8 -8z` });
      if (event.lane === "effects") return draw("rect", { x: right - 7, y: y - 7, width: 14, height: 14 });
      if (event.kind === "answer") return draw("path", { d: `M${right - 9} ${y - 9}l9 9l-9 9z` });
      if (event.lasted && right - left >= 8)
        return draw("rect", { x: left, y: y - 7, width: right - left, height: 14, rx: 3 });
      return bad ? draw("path", { d: `M${right - 7} ${y - 6}h14l-7 13z` }) : draw("circle", { cx: right, cy: y, r: 6 });
    }
  }

  // One trial.

  const story = document.getElementById("story");
  let shown = null, timeline = null;

  function command(text) {
    return make("p", {}, make("code", {}, text));
  }
  function table(style, caption, heads, rows) {
    const head = make("tr", {}, ...heads.map((text) => make("th", { scope: "col" }, text)));
    const box = make("div", { class: "scroll", role: "region", "aria-label": caption, tabindex: "0" });
    box.append(make("table", { class: style }, make("caption", {}, make("span", {}, caption)), make("thead", {}, head),
      make("tbody", {}, ...rows)));
    return box;
  }
  function evidence(trial) {
    if (!trial.evidence.length) return [];
    const rows = trial.evidence.map(([kind, text, lines]) => make("tr", {},
      make("th", { scope: "row" }, words[kind]), make("td", { class: "said" }, words[text]),
      make("td", {}, lines.map(([file, line]) => where(file, line)).join(", ") || "not in the log")));
    return [make("h3", {}, "Evidence"), table("evidence words", "What the verdict rests on", ["finding", "observed", "log"], rows)];
  }
  function pressed(button, value) {
    button.setAttribute("aria-pressed", String(value));
  }
  function tools() {
    const one = (text, label, act) => {
      const button = make("button", { type: "button", "aria-label": label }, text);
      button.addEventListener("click", act);
      return button;
    };
    const time = one("Seconds", "Seconds: place the events by time", () => set(false));
    const order = one("Order", "Order: place the events one after the other", () => set(true));
    function set(byOrder) {
      timeline.byOrder = byOrder;
      pressed(time, !byOrder);
      pressed(order, byOrder);
      timeline.whole();
    }
    pressed(time, !timeline.byOrder);
    pressed(order, timeline.byOrder);
    const failed = timeline.events.filter((event) => event.tone === 1 && event.kind === "result");
    let next = 0;
    const jump = one(`Failed call (${failed.length})`, `Failed call (${failed.length}): go to the next one`, () => {
      timeline.choose(failed[next].number, true);
      next = (next + 1) % failed.length;
    });
    return make("div", { class: "tools" }, ...(failed.length ? [jump] : []), time, order, make("span", { class: "gap" }),
      one("+", "Zoom in", () => timeline.zoom(0.6)), one("−", "Zoom out", () => timeline.zoom(1 / 0.6)),
      one("◀", "Move to earlier events", () => timeline.move(-0.3)), one("▶", "Move to later events", () => timeline.move(0.3)),
      one("Whole", "Show the whole trial", () => timeline.whole()));
  }
  function eventTable(events) {
    const rows = events.map((event) => {
      const row = make("tr", {}, make("th", { scope: "row", class: "t" }, seconds(event.t)),
        make("td", {}, event.lane), make("td", {}, event.tone === 1 ? make("span", { class: "badtext" }, event.kind) : event.kind),
        make("td", { class: "t" }, event.lasted ? seconds(event.lasted) : ""), make("td", {}, event.text),
        make("td", {}, where(event.file, event.line)));
      event.row = row;
      return row;
    });
    return table("events", "Every event of the trial, in time order", ["at", "lane", "event", "took", "what", "log"], rows);
  }
  function show(key, focus) {
    const trial = trials.get(key);
    if (!trial) return;
    shown = key;
    const chip = make("span", { class: `chip o-${trial.look}` }, make("span", { "aria-hidden": "true" }, words[trial.mark]),
      ` ${words[trial.outcome]}`);
    const title = document.getElementById("trial-h");
    title.replaceChildren(`Trial ${key} `, chip);
    const ruled = words[trial.ruled] ? [make("p", { class: "why" }, words[trial.ruled])] : [];
    const parts = [...ruled, make("p", { class: "why" }, words[trial.why]), ...evidence(trial)];
    parts.push(make("h3", {}, "Prompt"), make("div", { class: "quote" }, words[trial.prompt]));
    parts.push(make("h3", {}, "Answer"), make("div", { class: "quote" }, words[trial.answer] || "none"));
    parts.push(make("h3", {}, "Timeline"));
    if (trial.events && trial.events.length) {
      const events = rowsOf(trial);
      const choose = (number, focus) => {
        for (const event of events) {
          event.row?.classList.toggle("on", event.number === number);
          event.shape?.classList.toggle("on", event.number === number);
        }
        const row = events[number].row;
        row.tabIndex = -1;
        if (focus) row.focus({ preventScroll: true });
        row.scrollIntoView({ block: "center", behavior: still ? "auto" : "smooth" });
      };
      timeline = new Timeline(trial, events, choose);
      parts.push(tools(), timeline.box);
      parts.push(make("p", {}, make("small", {},
        "● call · ▬ call that took time · ▼ ✖ failed · ◆ fault · ■ effect · ▶ answer. Choose a mark to see its line.")));
      parts.push(eventTable(events));
    } else {
      timeline = null;
      parts.push(make("p", {}, trial.events ? "No event was logged." : "Left out, to keep this file small. This prints it:"));
    }
    parts.push(make("h3", {}, "Rerun"), command(trial.show));
    if (trial.replay !== trial.show) parts.push(command(trial.replay));
    story.replaceChildren(...parts);
    timeline?.render();
    for (const row of document.querySelectorAll("#rows tr.chosen")) row.classList.remove("chosen");
    document.querySelector(`#rows a[href="#trial=${CSS.escape(key)}"]`)?.closest("tr").classList.add("chosen");
    if (focus) {
      document.getElementById("trial").scrollIntoView({ behavior: still ? "auto" : "smooth" });
      title.focus({ preventScroll: true });
    }
  }

  // The table of all trials.

  const form = document.getElementById("filter"), body = document.querySelector("#rows tbody");
  const rows = body ? [...body.rows] : []; // a page of one trial has no table
  const outcome = document.getElementById("by-outcome"), fault = document.getElementById("by-fault");
  const text = document.getElementById("by-text"), found = document.getElementById("found");
  const texts = new Map();

  function searched(row) {
    if (!texts.has(row)) {
      const trial = trials.get(row.cells[0].textContent);
      texts.set(row, [row.textContent, words[trial.why], words[trial.prompt], words[trial.answer]].join(" ").toLowerCase());
    }
    return texts.get(row);
  }
  function filter() {
    const wanted = text.value.trim().toLowerCase();
    let left = 0;
    for (const row of rows) {
      const fits = (!outcome.value || (outcome.value === "!bad" ? row.dataset.bad : row.dataset.o === outcome.value)) &&
        (!fault.value || row.dataset.m.includes(`|${fault.value}|`)) && (!wanted || searched(row).includes(wanted));
      row.hidden = !fits;
      left += fits ? 1 : 0;
    }
    found.textContent = `${left} of ${rows.length} trials`;
  }
  function value(row, column) {
    const said = row.cells[column].textContent;
    if (column === 0) return said.split(/(\d+)/).map((part) => (/^\d/.test(part) ? Number(part) : part));
    if (column < 5) return [said];
    return [said === "–" ? -1 : Number(said)];
  }
  function compare(a, b) {
    for (let n = 0; n < Math.max(a.length, b.length); n += 1) {
      if (a[n] === b[n]) continue;
      if (a[n] === undefined || b[n] === undefined) return a[n] === undefined ? -1 : 1;
      return a[n] < b[n] ? -1 : 1;
    }
    return 0;
  }
  function sortable() {
    const order = new Map(rows.map((row, n) => [row, n]));
    const heads = [...document.querySelectorAll("#rows thead th")];
    heads.forEach((head, column) => {
      const button = make("button", { type: "button" }, head.textContent);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const key = column === 1 ? (row) => [order.get(row)] : (row) => value(row, column);
        const keys = new Map(rows.map((row) => [row, key(row)]));
        rows.sort((a, b) => (down ? -1 : 1) * compare(keys.get(a), keys.get(b)) || order.get(a) - order.get(b));
        body.append(...rows);
      });
      head.replaceChildren(button);
    });
  }

  // Addresses: #trial=p3.r1 shows a trial, #met=fault@target those that met it.

  function go(focus) {
    const [name, value] = location.hash.slice(1).split(/=(.*)/s);
    if (name === "trial") show(decodeURIComponent(value ?? ""), focus);
    if (name === "met") {
      form.reset();
      fault.value = decodeURIComponent(value ?? "");
      filter();
      document.getElementById("trials").scrollIntoView({ behavior: still ? "auto" : "smooth" });
      document.getElementById("trials-h").focus({ preventScroll: true });
    }
  }
  if (form) {
    form.hidden = false;
    sortable();
    form.addEventListener("input", filter);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", () => setTimeout(filter));
    addEventListener("hashchange", () => go(true));
    filter();
  }
  addEventListener("resize", () => timeline?.render());
  if (data.trials.length) show(data.trials[0].key, false);
  else story.append(make("p", {}, "No trial was started."));
  if (form) go(Boolean(location.hash));
})();
