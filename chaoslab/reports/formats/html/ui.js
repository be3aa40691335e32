"use strict";
(() => {
  const main = document.getElementById("main"), byId = (id) => document.getElementById(id);
  const looks = new Map(JSON.parse(byId("words").textContent).outcomes.map((one) => [one.name, one]));
  function chip(outcome) {
    const look = looks.get(outcome) ?? { word: outcome, glyph: "" };
    return make("span", { class: `chip o-${outcome}` }, make("span", { "aria-hidden": "true" }, look.glyph), ` ${look.word}`);
  }
  function put(element, ...children) {
    if (typeof element === "string") element = byId(element);
    element.replaceChildren(...children);
  }
  // The rows of a table, of which that with the focus keeps it.
  function fill(body, ...rows) {
    const focused = document.activeElement, row = body.contains(focused) ? focused.closest("tr") : null;
    const at = row ? [...row.querySelectorAll("a, input")].indexOf(focused) : -1;
    put(body, ...rows);
    if (at >= 0) rows.find((one) => one.dataset.key === row.dataset.key)?.querySelectorAll("a, input")[at]?.focus({ preventScroll: true });
  }
  function text(id, value) {
    const element = byId(id);
    if (element.textContent !== value) element.textContent = value;
  }
  function told(seconds) {
    if (seconds === 0) return "0 s";
    if (seconds < 0.01) return `${(seconds * 1000).toFixed(1)} ms`;
    if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 2 : 0)} s`;
    const minutes = Math.round(seconds / 60);
    return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  }
  const compared = new Intl.Collator("en", { numeric: true }).compare; // one for all: making it takes long
  const rate = (value) => (value >= 100 ? value.toFixed(0) : value.toPrecision(2));
  const number = (value) => value.toLocaleString("en-US");
  const PAGE = 100; // rows

  let quiet = 0;
  function say(words) {
    text("said", words);
    clearTimeout(quiet);
    quiet = setTimeout(() => text("said", ""), 8000);
  }
  async function act(where, what) {
    try {
      const answer = await fetch(where, { method: "POST", headers: { "x-chaoslab-ui": "1" }, body: JSON.stringify(what) });
      say(answer.ok ? (await answer.json()).said : await answer.text());
      return answer.ok;
    } catch {
      say("chaoslab ui does not answer: start it again");
      return false;
    }
  }
  function listen(where, take) {
    const source = new EventSource(where);
    source.onmessage = (event) => { text("link", ""); take(JSON.parse(event.data)); };
    source.onerror = () => text("link", "not connected: chaoslab ui has ended, or is away");
    addEventListener("pagehide", () => source.close());
  }
  // At most once a frame, and not faster than it can be drawn.
  function lately(draw_) {
    let waiting = false;
    return () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => { waiting = false; draw_(); });
    };
  }
  function sortable(table, sort) {
    for (const head of table.querySelectorAll("thead th[data-by]")) {
      const button = make("button", { type: "button" }, head.textContent);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        for (const other of table.querySelectorAll("th")) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        sort(head.dataset.by, down);
      });
      head.replaceChildren(button);
    }
  }
  function choices(select, values) {
    const known = new Set([...select.options].map((option) => option.value));
    for (const [value, said] of values) if (!known.has(value)) select.append(make("option", { value }, said));
  }

  // All runs.

  function runsPage() {
    const data = JSON.parse(byId("state").textContent), runs = new Map(), drawn = new Map();
    const search = byId("by-text"), state = byId("by-state"), name = byId("by-name");
    const body = document.querySelector("#rows tbody");
    let by = "began", down = true, left = 0, page = 1;

    const calls = {
      going: (run) => run.going, harm: (run) => run.harmed > 0, bad: (run) => run.share !== null && run.share < 1,
    };
    const fits = (run, words) => (!state.value || calls[state.value](run)) && (!name.value || run.name === name.value) &&
      (!words || `${run.run} ${run.name} ${run.said} ${run.began} ${run.seed} ${run.commit} ${run.ended}`.toLowerCase().includes(words));
    function order(a, b) {
      if (Boolean(a.going) !== Boolean(b.going)) return a.going ? -1 : 1;
      const one = a[by] ?? "", other = b[by] ?? "";
      const less = typeof one === "number" && typeof other === "number" ? one - other
        : compared(String(one), String(other));
      return (down ? -1 : 1) * (less || compared(String(a.run), String(b.run)));
    }
    function row(run) {
      const cell = (value, style = "n") => make("td", { class: style }, value === null || value === undefined || value === "" ? "–" : String(value));
      const link = make("a", { href: `/run/${encodeURIComponent(run.run)}` }, run.run);
      const said = run.gone ? "its folder is gone" : [run.ruling, run.said ?? "not read yet", run.ended === "done" ? "" : run.ended].filter(Boolean).join("; ");
      return make("tr", { "data-key": run.run, ...(run.gone ? { class: "gone" } : {}) }, make("th", { scope: "row" }, run.gone ? run.run : link),
        cell(run.name, "said"), cell(run.well), make("td", { class: run.harmed ? "n harmed" : "n" }, String(run.harmed ?? "–")),
        make("td", { class: run.going ? "said going" : "said" }, said),
        cell(run.faults), cell(run.began, "began"), cell(run.seed), cell(run.level));
    }
    const render = lately(() => {
      const words = search.value.trim().toLowerCase();
      const shown = [...runs.values()].filter((run) => fits(run, words)).sort(order);
      const pages = Math.max(1, Math.ceil(shown.length / PAGE));
      page = Math.min(page, pages);
      fill(body, ...shown.slice((page - 1) * PAGE, page * PAGE).map((run) => {
        if (!drawn.has(run.run)) drawn.set(run.run, row(run));
        return drawn.get(run.run);
      }));
      text("pages", `page ${page} of ${number(pages)}`);
      byId("back").disabled = page <= 1;
      byId("next").disabled = page >= pages;
      const going = [...runs.values()].filter((run) => run.going).length;
      text("count", `${shown.length} of ${runs.size} runs${going ? `, ${going} under way` : ""}${left ? `; ${left} are still being read` : ""}`);
      choices(name, [...new Set([...runs.values()].map((run) => run.name).filter(Boolean))].sort().map((one) => [one, one]));
      trends();
    });
    function trends() {
      const groups = new Map();
      for (const run of runs.values()) {
        if (run.share === null || run.share === undefined || run.going) continue;
        const key = `${run.name || "other runs"}${run.level ? `, level ${run.level}` : ""}`;
        if (!groups.has(key)) groups.set(key, []);
        groups.get(key).push(run);
      }
      const many = [...groups].filter(([, own]) => own.length > 1).map(([key, own]) => trend(key, own));
      put("trends", ...(many.length ? many : [make("p", { class: "note" }, "A scenario has a trend from its second run on.")]));
    }
    function trend(key, own) {
      const runs_ = own.sort((a, b) => compared(String(a.began), String(b.began)) || compared(String(a.run), String(b.run))).slice(-200);
      const x = (n) => 6 + (508 * n) / Math.max(1, runs_.length - 1), y = (run) => 40 - 34 * run.share;
      const last = runs_[runs_.length - 1];
      const svg = draw("svg", { viewBox: "0 0 520 46", role: "img", "aria-label": `${key}: ${runs_.length} runs, the last ${last.well} ended well` });
      for (const level of [6, 40]) svg.append(draw("line", { class: "level", x1: 0, x2: 520, y1: level, y2: level }));
      svg.append(draw("polyline", { points: runs_.map((run, n) => `${x(n)},${y(run)}`).join(" ") }));
      runs_.forEach((run, n) => {
        const mark = run.harmed ? draw("text", { class: "bad", x: x(n), y: y(run) + 4, "text-anchor": "middle" }, "✖")
          : runs_.length < 60 ? draw("circle", { cx: x(n), cy: y(run), r: 3 }) : null;
        if (!mark) return;
        mark.append(draw("title", {}, `${run.run}: ${run.well} ended well`));
        svg.append(mark);
      });
      return make("div", { class: "trend" }, make("b", {}, key), svg, make("span", { class: "note" }, `${runs_.length} runs, the last ${last.well}`));
    }
    function take(found) {
      for (const run of found.rows) { runs.set(run.run, run); drawn.delete(run.run); }
      left = found.left;
      put("campaigns", ...found.campaigns.map((one) => make("li", {}, "Campaign ", make("a", { href: `/campaign/${encodeURIComponent(one.name)}` }, one.name),
        `: ${one.state}, step ${one.steps}`)));
      render();
    }
    const turn = (to) => { page = to; render(); };
    sortable(byId("rows"), (column, descending) => { by = column; down = descending; turn(1); });
    byId("back").addEventListener("click", () => turn(page - 1));
    byId("next").addEventListener("click", () => turn(page + 1));
    byId("filter").addEventListener("input", () => turn(1));
    byId("filter").addEventListener("submit", (event) => event.preventDefault());
    byId("filter").addEventListener("reset", () => setTimeout(() => turn(1)));
    take(data);
    listen(`/events?since=${data.version}`, take);
  }

  // One run, while it happens.

  function runPage() {
    const here = location.pathname, given = JSON.parse(byId("state").textContent), body = document.querySelector("#rows tbody");
    const outcome = byId("by-outcome"), fault = byId("by-fault"), search = byId("by-text");
    let state = given.state, page = given.page, asked = { page: 1, sort: "", down: "" }, harmed = -1, sliding = false;

    function figures() {
      const found = [];
      const one = (value, said, more) => found.push(make("li", {}, make("b", {}, value), ` ${said}`, ...(more ? [make("small", {}, more)] : [])));
      const judged = state.well + state.bad;
      if (judged) one(`${state.well}`, `of ${number(judged)} judged ended well`);
      one(number(state.harmed), state.harmed === 1 ? "trial with harm" : "trials with harm");
      one(number(state.faults), "faults met", state.faults_per_s === null ? "" : `${rate(state.faults_per_s)} a second`);
      one(number(state.calls), "calls", state.calls_per_s === null ? "" : `${rate(state.calls_per_s)} a second`);
      if (state.incidents) one(state.mttr_s === null ? "none" : told(state.mttr_s), "to recovery (MTTR so far)", `${state.recovered} of ${state.incidents} incidents`);
      if (state.tokens) one(number(state.tokens), "tokens", state.tokens_max ? `limit ${number(state.tokens_max)} a trial` : "");
      if (state.usd) one(`$${state.usd.toFixed(4)}`, "spent", state.usd_max ? `limit $${state.usd_max}` : "");
      put("figures", ...found);
    }
    function bar() {
      const all = Object.values(state.outcomes).reduce((a, b) => a + b, 0);
      const svg = draw("svg", { viewBox: "0 0 1000 26", preserveAspectRatio: "none", "aria-hidden": "true" });
      let x = 0;
      for (const [name, count] of Object.entries(state.outcomes)) {
        const width = (1000 * count) / all;
        svg.append(draw("rect", { class: `o-${name} piece`, x, y: 0, width, height: 26 }));
        x += width;
      }
      byId("bar").setAttribute("aria-label", `Outcomes: ${Object.entries(state.outcomes).map(([name, count]) => `${count} ${looks.get(name)?.word ?? name}`).join(", ") || "none yet"}`);
      put("bar", ...(all ? [svg] : []));
      put("legend", ...Object.entries(state.outcomes).map(([name, count]) => make("li", {}, chip(name), ` ${number(count)} `,
        make("small", {}, `${((100 * count) / all).toFixed(all < 1000 ? 0 : 1)}%`))));
    }
    function harms() {
      if (state.harmed === harmed) return;
      if (harmed >= 0 && state.harmed > harmed) text("harm-said", `harm in ${state.harms[0].trial}: ${state.harms[0].text}`);
      harmed = state.harmed;
      const list = state.harms.map((one) => make("li", {}, make("a", { href: `${here}/trial/${encodeURIComponent(one.trial)}` }, one.trial), ` ${one.text}`));
      const more = state.harmed > list.length ? [make("p", { class: "note" }, `The latest ${list.length} of ${number(state.harmed)}.`)] : [];
      put("harms", ...(list.length ? [make("ul", { class: "harms", tabindex: "0", "aria-label": "Trials with harm, the latest first" }, ...list), ...more] : [make("p", { class: "note" }, "None was found.")]));
    }
    function matrix() {
      const { targets, rows } = state.matrix;
      if (!rows.length) return put("matrix", make("p", { class: "note" }, state.faults ? "No trial that met one is judged yet." : "No fault was met yet."));
      const head = make("tr", {}, make("th", { scope: "col" }, "fault"), ...targets.map((target) => make("th", { scope: "col" }, target)));
      const name = (words) => words.split(/(?<=_)/).flatMap((piece) => [piece, make("wbr")]);  // on a phone it needs two lines
      const lines = rows.map((row) => make("tr", {}, make("th", { scope: "row" }, ...name(row.fault)), ...row.cells.map((cell, n) => {
        if (!cell) return make("td", { class: "cell blank" }, make("span", { class: "sr" }, "not met"));
        const look = looks.get(cell.worst);
        const button = make("a", { href: "#trials" }, make("b", {}, cell.judged ? `${cell.bad}/${cell.judged}` : "with others"),
          make("span", {}, `${number(cell.trials)} met it`), make("span", { class: "w" }, `${look?.glyph ?? ""} ${look?.word ?? ""}`));
        button.addEventListener("click", () => {
          byId("filter").reset();
          choices(fault, [[`${row.fault}@${targets[n]}`, `${row.fault} on ${targets[n]}`]]);
          fault.value = `${row.fault}@${targets[n]}`;
          fetchPage({ page: 1 });
        });
        return make("td", { class: `cell o-${cell.worst}` }, button);
      })));
      put("matrix", make("table", { class: "matrix" }, make("thead", {}, head), make("tbody", {}, ...lines)));
      choices(fault, rows.flatMap((row) => row.cells.flatMap((cell, n) => (cell ? [[`${row.fault}@${targets[n]}`, `${row.fault} on ${targets[n]}`]] : []))));
    }
    let gateway = null; // the state of its levers, as the gateway told last
    const held = () => (state.levers === "gateway" ? gateway ?? { paused: false, ended: "", faults: [] } : { paused: state.paused, ended: "", faults: state.switches });
    function levers() {
      if (sliding) return;
      const focus = document.activeElement?.dataset.lever;
      const lever = (said, word) => {
        const button = make("button", { type: "button", "data-lever": word }, said);
        button.addEventListener("click", () => act(`${here}/steer`, { do: word }));
        return button;
      };
      const slider = ([name, chance]) => {
        const input = make("input", { type: "range", min: "0", max: "1", step: "0.05", value: chance, "aria-label": name, "data-lever": name });
        const said = make("span", {}, String(chance));
        input.addEventListener("input", () => { sliding = true; said.textContent = input.value; });
        input.addEventListener("change", () => { sliding = false; act(`${here}/steer`, { do: `${name}=${input.value}` }); });
        return make("span", { class: "lever" }, name, input, said);
      };
      const either = (paused, of, said) => (paused ? lever(`Resume${said}`, `${of}resume`) : lever(`Pause${said}`, `${of}pause`));
      const [said, found] = state.levers === "gateway" ? [" its faults", gateway] : ["", state];
      put("levers", ...(state.running && state.levers && found ? [either(found.paused, "", said), lever("Stop", "stop"),
        ...(state.manager === null ? [] : [either(state.manager, "manager=", " the proxy manager")]),
        ...Object.entries(state.chances).map(slider)] : []));
      const other = focus?.replace(/(pause|resume)$/, (word) => (word === "pause" ? "resume" : "pause"));
      if (focus) [...byId("levers").querySelectorAll("[data-lever]")].find((each) => [focus, other].includes(each.dataset.lever))?.focus();
    }
    let switched = "", boxes = new Map();
    function switches() {
      const faults = state.running ? held().faults : [], names = JSON.stringify(faults.map((fault) => fault.name));
      byId("switches").hidden = !faults.length;
      text("switches-said", held().ended ? `No more faults: ${held().ended}`
        : `Faults of the plan, on or off from the next ${state.levers === "gateway" ? "request" : "trial"} on`);
      if (names !== switched) {
        switched = names;
        boxes = new Map(faults.map((fault) => {
          const box = make("input", { type: "checkbox" }), said = make("small", {});
          box.addEventListener("change", async () => {
            if (!(await act(`${here}/steer`, { do: `${fault.name}=${box.checked ? "on" : "off"}` }))) box.checked = !box.checked;
          });
          return [fault.name, [box, said]];
        }));
        put("faults", ...faults.map((fault) => make("li", {}, make("label", { class: "line" }, boxes.get(fault.name)[0], make("span", {}, fault.name, " ", boxes.get(fault.name)[1])))));
      }
      for (const fault of faults) {
        const [box, said] = boxes.get(fault.name);
        box.checked = fault.on;
        said.textContent = fault.hits === undefined ? "" : `chance ${fault.chance}, ${number(fault.hits)} ${fault.hits === 1 ? "hit" : "hits"}`;
      }
    }
    let drawnLevers = "";
    const render = lately(() => {
      if (state.name) text("name", state.name);
      text("ended", [state.ruling, state.ended, state.levers === "gateway" && held().paused && "faults paused"].filter(Boolean).join(", "));
      byId("main").className = `verdict ${state.harmed || state.bad ? "bad" : state.running || !state.well ? "open" : "good"}`;
      text("facts", [`run ${state.run}`, state.world && `world ${state.world}`, state.seed !== null && `seed ${state.seed}`].filter(Boolean).join(" · "));
      byId("map").hidden = !state.map;
      byId("done").max = Math.max(1, state.of);
      byId("done").value = state.done;
      const parts = [`${number(state.done)} of ${number(state.of)} trials`];
      if (state.done - state.judged > 100) parts.push(`${number(state.judged)} judged so far`);
      if (state.trials_per_s) parts.push(`${rate(state.trials_per_s)} a second`);
      if (state.eta_s !== null && state.done < state.of) parts.push(`${told(state.eta_s)} to go`);
      if (state.running && state.now) parts.push(`now at ${state.now}`);
      if (state.read !== null) parts.push(`${(100 * state.read).toFixed(0)}% of its logs read`);
      text("done-said", parts.join(" · "));
      figures(); bar(); harms(); matrix(); counted();
      const now = JSON.stringify([state.running, held().paused, gateway === null, state.chances, state.manager]);
      if (now !== drawnLevers) { drawnLevers = now; levers(); }
      switches();
      byId("noted").hidden = !state.notes.length;
      put("notes", ...state.notes.map((note) => make("li", {}, note)));
    });
    function counted() {
      const apart = state.judged - state.kept;
      text("found", `${number(page.found)} of ${number(state.kept)} trials${apart ? `; ${number(apart)} more that ended well are only counted` : ""}`);
    }
    function table() {
      fill(body, ...page.rows.map((row) => make("tr", { "data-key": row.trial },
        make("th", { scope: "row" }, make("a", { href: `${here}/trial/${encodeURIComponent(row.trial)}` }, row.trial)),
        make("td", {}, chip(row.outcome)), make("td", { class: "said" }, row.why), make("td", { class: "said" }, row.prompt),
        make("td", { class: "said" }, row.met.map(([name, target]) => `${name} on ${target}`).join(", ")),
        make("td", { class: "n" }, row.seconds === null ? "–" : row.seconds.toFixed(3)), make("td", { class: "n" }, String(row.calls)),
        make("td", { class: "n" }, String(row.failed)))));
      counted();
      text("pages", `page ${page.page} of ${number(page.pages)}`);
      byId("back").disabled = page.page <= 1;
      byId("next").disabled = page.page >= page.pages;
    }
    let fetching = false, again = false, key = "";
    async function fetchPage(change = {}) {
      asked = { ...asked, ...change };
      if (fetching) { again = true; return; }
      fetching = true;
      const wanted = new URLSearchParams({ ...asked, outcome: outcome.value, met: fault.value, q: search.value.trim() });
      try {
        const answer = await fetch(`${here}/trials?${wanted}`);
        const found = answer.ok ? await answer.text() : "";
        if (found && found !== key) { key = found; page = JSON.parse(found); table(); }
      } catch { /* the stream of events says that nobody answers */ }
      fetching = false;
      if (again) { again = false; fetchPage(); }
    }
    let soon = 0;
    function take(found) {
      state = found;
      render();
      if (!soon) soon = setTimeout(() => { soon = 0; fetchPage(); }, page.rows.length ? 1000 : 0);
    }
    sortable(byId("rows"), (sort, down) => fetchPage({ sort, down: down ? "1" : "", page: 1 }));
    byId("filter").addEventListener("input", () => fetchPage({ page: 1 }));
    byId("filter").addEventListener("submit", (event) => event.preventDefault());
    byId("filter").addEventListener("reset", () => setTimeout(() => fetchPage({ page: 1 })));
    byId("back").addEventListener("click", () => fetchPage({ page: page.page - 1 }));
    byId("next").addEventListener("click", () => fetchPage({ page: page.page + 1 }));
    render();
    table();
    if (!page.rows.length || state.read !== null) fetchPage();
    listen(`${here}/events?since=${state.version}`, take);
    watch(() => state.running && state.levers === "gateway" && `${here}/levers`, (found) => { gateway = found; render(); });
  }

  // One trial, drawn by the script of reports; here is what can be done with it.

  function trialPage() {
    const copy = byId("copy");
    copy.addEventListener("click", async () => {
      await navigator.clipboard.writeText(copy.dataset.text).then(() => say(`copied: ${copy.dataset.text}`), () => say(copy.dataset.text));
    });
  }

  // Asks once a second while somebody looks, and takes what has changed.
  function watch(where, take) {
    let before = null;
    async function look() {
      const address = where();
      if (document.hidden || !address) return;
      try {
        const answer = await fetch(address);
        const said = await answer.text();
        text("link", answer.ok ? "" : said);
        if (answer.ok && said !== before) { before = said; take(JSON.parse(said)); }
      } catch { text("link", "not connected: chaoslab ui has ended, or is away"); }
    }
    look();
    setInterval(look, 1000);
    return look;
  }
  function logPage() {
    const log = byId("log"), tail = byId("tail"), stay = byId("stay");
    const look = watch(() => stay.checked && `${main.dataset.run}/tail/${encodeURIComponent(log.value)}`, (found) => {
      tail.textContent = found.lines.join("\n");
      tail.scrollTop = tail.scrollHeight;
    });
    log.addEventListener("change", () => { stay.checked = true; look(); });
  }

  function campaignPage() {
    const here = location.pathname;
    const plain = (value) => (typeof value === "number" ? String(Number(value.toPrecision(4))) : value === null || value === undefined || value === "" ? "–" : String(value));
    function table(heads, rows) {
      return make("table", { class: "sheet" }, make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head)))),
        make("tbody", {}, ...rows.map((cells) => make("tr", {}, ...cells.map((cell) => make("td", {}, cell instanceof Node ? cell : plain(cell)))))));
    }
    const mark = (holds, said) => make("span", { class: `chip ${holds ? "o-correct" : "o-failed"}` }, said);
    function take(found) {
      text("ended", found.state);
      main.className = `verdict ${found.not_undone.length || ["failed", "breached", "broken", "broken off", "not steady"].includes(found.state) ? "bad" : found.state === "held" ? "good" : "open"}`;
      put("trouble", ...[...(found.why ? [found.why] : []), ...found.not_undone.map((one) => `COULD NOT BE UNDONE: ${one}`), ...found.open.map((one) => `Not taken back yet: ${one}`), ...found.notes]
        .map((said) => make("p", { class: "why" }, said)));
      const one = (value, said, most) => make("li", {}, make("b", {}, value), ` ${said}`, ...(most === null || most === undefined ? [] : [make("small", {}, `limit ${plain(most)}`)]));
      const counted = ["trials", "failed", "harm", "calls", "faults"].filter((name) => found.now[name]);
      put("figures", ...counted.filter((name) => name !== "trials").map((name) => one(plain(found.now[name]), name)),
        ...found.spent.map((each) => one(each.name === "dollars" ? `$${plain(each.value)}` : plain(each.value), each.name === "dollars" ? "spent" : each.name === "trials" ? "trials" : "seconds", each.most)));
      const levers = { [found.state === "paused" ? "resume" : "pause"]: found.state === "paused" ? "Resume" : "Pause", stop: "Stop the campaign" };
      const shown = found.goes_on ? Object.keys(levers) : [];
      if (shown.join() !== [...byId("levers").children].map((each) => each.dataset.lever).join()) {  // else the focus would be lost
        put("levers", ...shown.map((name) => {
          const button = make("button", { type: "button", "data-lever": name }, levers[name]);
          button.addEventListener("click", () => act(`${here}/${name}`, {}));
          return button;
        }));
      }
      put("probes", found.probes.length ? table(["probe", "value", "should be", ""], found.probes.map((each) =>
        [each.name, each.value, each.should, mark(!each.why, each.why || "holds")])) : make("p", { class: "note" }, "No probe was looked at."),
      ...(found.probed ? [make("p", { class: "note" }, `Looked at ${found.probed}.`)] : []));
      put("steps", table(["round", "step", "end", "trials", "failed", "harm", "calls", "faults", ""], found.steps.map((each) =>
        [each.round, each.name, each.state === "under way" ? each.state : mark(each.state === "held", each.state),
          ...["trials", "failed", "harm", "calls", "faults"].map((name) => each.figures[name]), each.undone || !each.why ? each.why : `${each.why}; not taken back`])));
      put("runs", table(["run", "scenario", "ended well", "harm", "outcome"], found.runs.map((run) =>
        [make("a", { href: `/run/${encodeURIComponent(run.run)}` }, run.run), run.name, run.well, run.harmed, [run.ruling, run.said].filter(Boolean).join("; ")])));
    }
    watch(() => `${here}/state`, take);
  }

  ({ runs: runsPage, run: runPage, trial: trialPage, log: logPage, campaign: campaignPage })[main.dataset.page]?.();
})();
