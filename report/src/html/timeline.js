"use strict";
// Draws each timeline of the page on its canvas. A frame costs the lanes in sight and, of each, the marks that the window
// touches; marks narrower than a pixel share it, and a pixel is as dense as its time is busy.
const linked = [];
for (const root of document.querySelectorAll("figure.timeline")) timeline(root);

function timeline(root) {
  const FIELDS = 8, START = 0, LENGTH = 1, KIND = 2, NAME = 3, COUNT = 4, BUSY = 5, WHOLE_START = 6, WHOLE_LENGTH = 7;
  const RULER = 24, HEAD = 24, ROW = 20, NESTED = 16, SAMPLES = 30, SHORTEST = 20;
  const data = JSON.parse(root.querySelector("script[type='application/json']").textContent);
  const [scroll, tall, canvas, output] = [".scroll", ".tall", "canvas", "output"].map((at) => root.querySelector(at));
  const pen = canvas.getContext("2d");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const words = data.words, held = Math.max(data.length, 1);
  let [from, to] = data.focus;
  let [width, height, labels] = [0, 0, 0];
  let selected = null, hovered = null, lane = 0, planned = false, colours = {};

  // Rows from top to bottom: heads of groups, and lanes.
  const rows = [];
  let top = RULER;
  data.lanes.forEach((of, index) => {
    if (of.head !== null) { rows.push({ head: of.head, y: top, h: HEAD }); top += HEAD; }
    const h = of.samples ? SAMPLES : of.depth ? NESTED : ROW;
    rows.push({ lane: index, y: top, h });
    top += h;
  });
  const whole = top + 6;
  const rowOf = (index) => rows.find((row) => row.lane === index);
  const marksOf = (index) => data.lanes[index].marks;
  const sizeOf = (index) => marksOf(index).length / FIELDS;
  const field = (index, mark, what) => marksOf(index)[mark * FIELDS + what];

  // The first mark of a lane that ends after t; an instant takes its own nanosecond.
  function firstAfter(index, t) {
    const marks = marksOf(index);
    let [low, high] = [0, sizeOf(index)];
    while (low < high) {
      const mid = (low + high) >> 1, at = mid * FIELDS;
      if (marks[at] + Math.max(marks[at + LENGTH], 1) <= t) low = mid + 1; else high = mid;
    }
    return low;
  }
  const launchOf = (index, mark) => {
    const links = data.lanes[index].links;
    for (let i = 0; i < links.length; i += 3) if (links[i] === mark) return { lane: links[i + 1], mark: links[i + 2] };
    return null;
  };

  const nameOf = ({ lane: on, mark }) => {
    const count = field(on, mark, COUNT);
    return count > 1 ? count + " " + words.slices : data.names[field(on, mark, NAME)] || "";
  };

  // Numbers as the report writes them.
  const grouped = (digits) => digits.replace(/\B(?=(\d{3})+$)/g, "\u202f");
  const tenths = (n) => { const [a, b] = (Math.round(Math.abs(n) * 10) / 10).toFixed(1).split("."); return (n < 0 ? "-" : "") + grouped(a) + "." + b; };
  function time(ns) {
    const size = Math.abs(ns);
    if (size < 1e3) return ns + " ns";
    if (size < 1e8) return tenths(ns / 1e3) + " µs";
    return size < 1e10 ? tenths(ns / 1e6) + " ms" : tenths(ns / 1e9) + " s";
  }
  // Labels of a ruler: where whole times would repeat, those after the first say how much later they are.
  function tickLabels(times, step) {
    const whole = times.map(time);
    if (new Set(whole).size === whole.length) return whole;
    return times.map((at, i) => i ? "+" + time(Math.round(i * step)) : whole[0]);
  }
  const exact = (ns) => (ns < 0 ? "-" : "") + grouped(String(Math.abs(ns))) + " ns";

  const plot = () => Math.max(width - labels, 1);
  const x = (t) => labels + (t - from) / (to - from) * plot();
  const t = (px) => from + (px - labels) / plot() * (to - from);

  function readColours() {
    const style = getComputedStyle(root);
    const value = (name) => style.getPropertyValue(name).trim();
    const kinds = data.kinds.map((kind) => dark.matches ? kind.dark : kind.light);
    const bright = (c) => parseInt(c.slice(1, 3), 16) * 299 + parseInt(c.slice(3, 5), 16) * 587 + parseInt(c.slice(5, 7), 16) * 114 > 128000;
    colours = { text: value("--text"), dim: value("--dim"), line: value("--line"), soft: value("--soft"), sheet: value("--sheet"),
      accent: value("--accent"), sans: value("--sans"), mono: value("--mono"), kinds, ink: kinds.map((c) => bright(c) ? "#101418" : "#fff") };
    for (const item of root.querySelectorAll("[data-kind]")) item.firstChild.style.background = kinds[item.dataset.kind];
  }

  function resize() {
    width = scroll.clientWidth;
    tall.style.height = whole + "px";
    height = Math.min(whole, scroll.clientHeight);
    labels = width < 560 ? 84 : 190;
    const scale = devicePixelRatio || 1;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.height = height + "px";
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    plan();
  }

  function plan() {
    if (planned) return;
    planned = true;
    requestAnimationFrame(() => { planned = false; draw(); });
  }

  function draw() {
    const down = scroll.scrollTop;
    pen.clearRect(0, 0, width, height);
    pen.textBaseline = "middle";
    let drawn = 0;
    for (const row of rows) {
      const y = row.y - down;
      if (y + row.h < RULER || y > height) continue;
      if (row.head !== undefined) { drawHead(row, y); continue; }
      if (row.lane === lane) { pen.fillStyle = colours.soft; pen.fillRect(0, y, width, row.h); }
      drawn += data.lanes[row.lane].samples ? drawSamples(row, y) : drawMarks(row, y);
      drawLabel(row, y);
    }
    drawLink(down);
    drawRuler();
    drawEvidence();
    const seen = { drawn, from: Math.round(from), to: Math.round(to), lane, selected: selected ? selected.lane + ":" + selected.mark : "" };
    Object.assign(root.dataset, seen);
  }

  function drawHead(row, y) {
    pen.fillStyle = colours.soft;
    pen.fillRect(0, y, width, row.h);
    pen.fillStyle = colours.text;
    pen.font = "600 12px " + colours.sans;
    pen.fillText(row.head, 8, y + row.h / 2 + 1, width - 16);
  }

  function drawLabel(row, y) {
    const of = data.lanes[row.lane];
    pen.fillStyle = row.lane === lane ? colours.soft : colours.sheet;
    pen.fillRect(0, y, labels, row.h);
    pen.fillStyle = row.lane === lane ? colours.accent : colours.dim;
    pen.font = (row.lane === lane ? "600 " : "") + "11px " + colours.sans;
    const indent = 10 + Math.min(of.depth, 6) * 8;
    pen.fillText(fit(of.label, labels - indent - 6), indent, y + row.h / 2 + 1);
    pen.fillStyle = colours.line;
    pen.fillRect(0, y + row.h - .5, width, .5);
  }

  // The beginning of a text that is at most so wide.
  function fit(text, most) {
    if (pen.measureText(text).width <= most) return text;
    let [low, high] = [0, text.length];
    while (low < high) {
      const mid = (low + high + 1) >> 1;
      if (pen.measureText(text.slice(0, mid) + "…").width <= most) low = mid; else high = mid - 1;
    }
    return low ? text.slice(0, low) + "…" : "";
  }

  function drawMarks(row, y) {
    const marks = marksOf(row.lane), size = sizeOf(row.lane), [above, h] = [y + 2, row.h - 4];
    let drawn = 0, pixel = null;
    const flush = () => {
      if (!pixel) return;
      let kind = 0;
      pixel.kinds.forEach((busy, at) => { if (busy > (pixel.kinds[kind] || -1)) kind = at; });
      pen.globalAlpha = .3 + .7 * Math.min(pixel.busy, 1);
      pen.fillStyle = colours.kinds[kind];
      pen.fillRect(pixel.at, above, 1, h);
      pen.globalAlpha = 1;
      pixel = null;
    };
    pen.font = "11px " + colours.mono;
    for (let mark = firstAfter(row.lane, from); mark < size; mark++) {
      const at = mark * FIELDS, start = marks[at];
      if (start >= to) break;
      const [a, b] = [Math.max(x(start), labels), Math.min(x(start + marks[at + LENGTH]), width)];
      drawn++;
      const kind = marks[at + KIND], share = marks[at + LENGTH] ? marks[at + BUSY] / marks[at + LENGTH] : 1;
      if (b - a < 1.5) {
        const column = Math.floor(a);
        if (pixel && pixel.at !== column) flush();
        pixel = pixel || { at: column, busy: 0, kinds: [] };
        pixel.busy += Math.max((b - a) * share, .05);
        pixel.kinds[kind] = (pixel.kinds[kind] || 0) + b - a;
        continue;
      }
      flush();
      const shared = marks[at + COUNT] > 1;
      pen.globalAlpha = shared ? .3 + .7 * Math.min(share, 1) : 1;
      pen.fillStyle = colours.kinds[kind];
      pen.fillRect(a, above, Math.max(b - a - (b - a > 3 ? .75 : 0), .5), h);
      pen.globalAlpha = 1;
      if (b - a > 26 && row.h >= NESTED) {
        const name = shared ? marks[at + COUNT] + " " + words.slices : data.labels[marks[at + NAME]] || data.names[marks[at + NAME]] || "";
        pen.fillStyle = shared ? colours.text : colours.ink[kind];
        pen.fillText(fit(name, b - a - 8), a + 4, y + row.h / 2 + 1);
      }
    }
    flush();
    for (const [which, colour] of [[hovered, colours.dim], [selected, colours.accent]]) {
      if (!which || which.lane !== row.lane) continue;
      const start = field(which.lane, which.mark, START), end = start + field(which.lane, which.mark, LENGTH);
      if (end < from || start > to) continue;
      const [a, b] = [Math.max(x(start), labels), Math.min(x(end), width)];
      pen.strokeStyle = colour;
      pen.lineWidth = 2;
      pen.strokeRect(a - 1, y + 1, Math.max(b - a + 1, 3), row.h - 2);
    }
    return drawn;
  }

  function drawSamples(row, y) {
    const of = data.lanes[row.lane];
    if (!of.range) return 0;
    const least = Math.min(of.range[0], 0), most = Math.max(of.range[1], least + Number.MIN_VALUE), n = of.samples.length;
    const scale = (value) => (value - least) / (most - least) * (row.h - 6);
    let drawn = 0;
    pen.fillStyle = colours.accent;
    for (let i = Math.max(0, Math.floor(from / held * n)); i < n && i * held / n < to; i++) {
      if (!of.samples[i]) continue;
      const [a, b] = [Math.max(x(i * held / n), labels), Math.min(x((i + 1) * held / n), width)];
      const [low, high] = of.samples[i].map(scale);
      pen.globalAlpha = .35;
      pen.fillRect(a, y + row.h - 3 - high, b - a + .5, high);
      pen.globalAlpha = 1;
      pen.fillRect(a, y + row.h - 3 - high, b - a + .5, Math.max(high - low, 1.2));
      drawn++;
    }
    return drawn;
  }

  // From the call to what it launched, where both are in sight.
  function drawLink(down) {
    if (!selected) return;
    const launch = launchOf(selected.lane, selected.mark);
    if (!launch) return;
    const point = (of, end) => {
      const row = rowOf(of.lane);
      return [x(field(of.lane, of.mark, START) + (end ? field(of.lane, of.mark, LENGTH) / 2 : 0)), row.y - down + row.h / 2];
    };
    const [a, b] = [point(launch, true), point(selected, false)];
    pen.save();
    pen.beginPath();
    pen.rect(labels, RULER, plot(), height - RULER);
    pen.clip();
    pen.strokeStyle = colours.accent;
    pen.lineWidth = 1.5;
    pen.beginPath();
    pen.moveTo(...a);
    const bend = Math.max(Math.abs(b[0] - a[0]) / 2, 12);
    pen.bezierCurveTo(a[0] + bend, a[1], b[0] - bend, b[1], ...b);
    pen.stroke();
    pen.beginPath();
    pen.arc(b[0], b[1], 3, 0, 7);
    pen.fillStyle = colours.accent;
    pen.fill();
    pen.restore();
  }

  function drawRuler() {
    pen.fillStyle = colours.sheet;
    pen.fillRect(0, 0, width, RULER);
    const least = (to - from) / Math.max(plot() / 96, 1);
    let step = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
    step = [1, 2, 5, 10].map((n) => n * step).find((n) => n >= least) || step;
    pen.font = "11px " + colours.sans;
    pen.fillStyle = colours.dim;
    const ticks = [];
    for (let at = Math.ceil((from + data.offset) / step) * step - data.offset; at <= to; at += step) if (x(at) >= labels) ticks.push(at);
    const names = tickLabels(ticks.map((at) => Math.round(at + data.offset)), step);
    ticks.forEach((at, i) => {
      pen.fillRect(x(at), RULER - 6, 1, 6);
      pen.fillText(names[i], x(at) + 4, RULER / 2);
    });
    pen.fillStyle = colours.sheet;
    pen.fillRect(0, 0, labels, RULER);
    pen.fillStyle = colours.text;
    pen.font = "600 11px " + colours.sans;
    pen.fillText("↔ " + time(Math.round(to - from)), 8, RULER / 2);
    pen.fillStyle = colours.line;
    pen.fillRect(0, RULER - .5, width, .5);
    pen.fillRect(labels - .5, 0, .5, height);
  }

  // Two lines over all lanes around what the picture is about.
  function drawEvidence() {
    if (!data.evidence) return;
    const [a, b] = data.evidence.map(x);
    pen.fillStyle = colours.accent;
    for (const at of [a, b]) if (at >= labels && at <= width) pen.fillRect(at - .75, 0, 1.5, height);
    const [left, right] = [Math.max(a, labels), Math.min(b, width)];
    if (right > left) pen.fillRect(left, RULER - 3, right - left, 3);
  }

  function show(a, b) {
    const span = Math.min(Math.max(b - a, SHORTEST), held);
    const middle = Math.min(Math.max((a + b) / 2, span / 2), held - span / 2);
    [from, to] = [middle - span / 2, middle + span / 2];
    plan();
  }
  // Timelines that are compared show as much time each, from as far into their own step.
  const begin = data.focus[0];
  const follow = (into, span) => show(begin + into, begin + into + span);
  if (root.dataset.linked !== undefined) linked.push(follow);
  function view(a, b) {
    show(a, b);
    if (linked.includes(follow)) for (const other of linked) if (other !== follow) other(from - begin, to - from);
  }
  const zoom = (factor, at) => view(at - (at - from) * factor, at + (to - at) * factor);
  const pan = (part) => view(from + (to - from) * part, to + (to - from) * part);
  const cursor = () => {
    if (!selected) return (from + to) / 2;
    const middle = field(selected.lane, selected.mark, START) + field(selected.lane, selected.mark, LENGTH) / 2;
    return middle >= from && middle <= to ? middle : (from + to) / 2;
  };

  function reveal() {
    const row = rowOf(lane);
    if (row.y - RULER < scroll.scrollTop) scroll.scrollTop = row.y - RULER - HEAD;
    else if (row.y + row.h > scroll.scrollTop + height) scroll.scrollTop = row.y + row.h - height;
  }

  function select(which) {
    selected = which;
    if (which) {
      lane = which.lane;
      const start = field(lane, which.mark, START), length = field(lane, which.mark, LENGTH);
      if (start + length < from || start > to) view(start + (from - to) / 2, start + (to - from) / 2);
      reveal();
    }
    tell();
    plan();
  }

  function fact(label, value) {
    const [span, name] = [document.createElement("span"), document.createElement("em")];
    name.textContent = label;
    span.append(name, value);
    return span;
  }

  function tell() {
    output.replaceChildren();
    if (!selected) { output.append(fact(words.nothing, "")); return; }
    const { lane: on, mark } = selected, get = (what) => field(on, mark, what);
    const title = document.createElement("b");
    title.textContent = nameOf(selected);
    output.append(title, fact(data.kinds[get(KIND)].name, data.lanes[on].label), fact(words.from, exact(get(WHOLE_START) + data.offset)), fact(words.for, exact(get(WHOLE_LENGTH))));
    if (get(COUNT) > 1) output.append(fact(words.busy, exact(get(BUSY))));
    const launch = launchOf(on, mark);
    if (launch) {
      output.append(fact(words.launch, data.names[field(launch.lane, launch.mark, NAME)] || ""));
      output.append(fact(words.after, exact(get(WHOLE_START) - field(launch.lane, launch.mark, WHOLE_START))));
    }
  }

  function under(event) {
    const box = canvas.getBoundingClientRect(), [px, py] = [event.clientX - box.left, event.clientY - box.top];
    if (py < RULER) return { px };
    const row = rows.find((row) => row.lane !== undefined && row.y <= py + scroll.scrollTop && py + scroll.scrollTop < row.y + row.h);
    if (!row) return { px };
    if (px < labels) return { px, row };
    // What lies there, or two pixels to a side: instants must be caught too.
    const at = t(px), begun = (mark, by) => mark < sizeOf(row.lane) && field(row.lane, mark, START) <= by;
    let mark = firstAfter(row.lane, at);
    if (begun(mark, at)) return { px, row, hit: { lane: row.lane, mark } };
    const slack = (to - from) / plot() * 2;
    mark = firstAfter(row.lane, at - slack);
    return { px, row, hit: begun(mark, at + slack) ? { lane: row.lane, mark } : null };
  }

  // Keys, as in the terminal interface.
  function step(by) {
    const size = sizeOf(lane);
    if (!size) return;
    const next = selected && selected.lane === lane ? selected.mark + by : firstAfter(lane, (from + to) / 2);
    if (next >= 0 && next < size) select({ lane, mark: next });
  }
  function toLane(by) {
    lane = Math.min(Math.max(lane + by, 0), data.lanes.length - 1);
    const mark = firstAfter(lane, cursor());
    const near = mark < sizeOf(lane) && field(lane, mark, START) < to;
    selected = near ? { lane, mark } : null;
    reveal();
    tell();
    plan();
  }
  const keys = {
    "+": () => zoom(.5, cursor()), "=": () => zoom(.5, cursor()), w: () => zoom(.5, cursor()),
    "-": () => zoom(2, cursor()), s: () => zoom(2, cursor()),
    ArrowLeft: () => pan(-.25), a: () => pan(-.25), ArrowRight: () => pan(.25), d: () => pan(.25),
    ArrowUp: () => toLane(-1), k: () => toLane(-1), ArrowDown: () => toLane(1), j: () => toLane(1),
    "[": () => step(-1), "]": () => step(1),
    "0": () => view(0, held), Escape: () => select(null),
    f: () => {
      if (!selected) return view(...data.focus);
      const start = field(selected.lane, selected.mark, START), length = Math.max(field(selected.lane, selected.mark, LENGTH), SHORTEST);
      view(start - length / 8, start + length * 9 / 8);
    },
    l: () => { const launch = selected && launchOf(selected.lane, selected.mark); if (launch) select(launch); },
  };
  function press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  }

  let drag = null;
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    drag = { px: event.clientX, from, to, moved: false };
    canvas.setPointerCapture(event.pointerId);
    scroll.focus({ preventScroll: true });
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!drag) {
      const { hit } = under(event);
      if (hit?.lane !== hovered?.lane || hit?.mark !== hovered?.mark) {
        hovered = hit;
        canvas.title = hit ? nameOf(hit) : "";
        plan();
      }
      return;
    }
    const by = event.clientX - drag.px;
    if (Math.abs(by) > 3) drag.moved = true;
    if (drag.moved) {
      canvas.classList.add("held");
      const ns = by / plot() * (drag.to - drag.from);
      view(drag.from - ns, drag.to - ns);
    }
  });
  const release = (event) => {
    canvas.classList.remove("held");
    if (drag && !drag.moved && event.type === "pointerup") {
      const { row, hit } = under(event);
      if (row) lane = row.lane;
      select(hit || null);
    }
    drag = null;
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", () => { hovered = null; plan(); });
  canvas.addEventListener("dblclick", () => keys.f());
  canvas.addEventListener("wheel", (event) => {
    const sideways = event.shiftKey ? event.deltaY : event.deltaX;
    if (event.ctrlKey || event.metaKey) zoom(2 ** (event.deltaY / 200), t(Math.max(under(event).px, labels)));
    else if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) pan(sideways / plot());
    else return;
    event.preventDefault();
  }, { passive: false });
  scroll.addEventListener("keydown", press);
  scroll.addEventListener("scroll", plan);
  for (const button of root.querySelectorAll("button")) button.addEventListener("click", () => keys[button.dataset.key]());
  dark.addEventListener("change", () => { readColours(); plan(); });
  new ResizeObserver(resize).observe(scroll);
  readColours();
  tell();
  resize();
  draw();
}
