"use strict";
// The plots: four canvases with a common time axis. The data has a column for each property of the points of a kind, with
// times, packet numbers and offsets as differences to the point before.

const KINDS = [
  // name, label, how it is drawn; the first are below the others
  ["reordered", "late, not lost", "shade"],
  ["data", "packets", "bar"],
  ["again", "retransmissions", "bar"],
  ["ack", "acknowledged", "step"],
  ["edge", "edge of the window", "step"],
  ["sack", "SACK", "bar"],
  ["duplicate", "DSACK", "bar"],
  ["unknown", "cannot tell", "mark"],
  ["incident", "what happened to the connection", "mark"],
  ["discarded", "not kept by the receiver", "mark"],
  ["copied", "duplicated by the network", "mark"],
  ["spurious", "spurious retransmission", "mark"],
  ["lost", "lost", "mark"],
];
const MARGIN = { left: 66, right: 10, top: 10, bottom: 24 };
const LEAST_SPAN_US = 20;
// More marks than this in view are drawn without squares, which would hide what is below them.
const MOST_SQUARES = 40;
// The width of an interval of the throughput, in pixels.
const INTERVAL = 6;

const id = (name) => document.getElementById(name);
const drawings = JSON.parse(id("data").textContent).map(decode);
const hidden = new Set();
let drawing = drawings[0];
let view = { from: 0, to: 1 };
let scheduled = false;

function sums(differences) {
  let sum = 0;
  return Float64Array.from(differences, (difference) => (sum += difference));
}

function decode(raw) {
  const drawing = { startsS: raw.starts_s, stepUs: raw.step_us, leftOut: raw.left_out, kinds: {} };
  drawing.bottleneck = raw.bottleneck_mbit_s;
  let end = 1;
  for (const [name] of KINDS) {
    const columns = raw[name];
    const from = sums(columns.from);
    const to = from.map((offset, i) => offset + columns.len[i]);
    const kind = { at: sums(columns.at), frame: sums(columns.frame), from, to };
    kind.count = columns.count;
    kind.late = columns.late;
    kind.places = columns.places;
    if (kind.at.length) end = Math.max(end, kind.at[kind.at.length - 1]);
    drawing.kinds[name] = kind;
  }
  drawing.end = end;
  drawing.flight = flight(drawing.kinds);
  let most = 0;
  drawing.acked = drawing.kinds.ack.to.map((to) => (most = Math.max(most, to)));
  return drawing;
}

// Data that was sent and is not acknowledged, and the window, after each packet and acknowledgment.
function flight(kinds) {
  const { data, again, ack, edge } = kinds;
  const events = [];
  for (const kind of [data, again]) kind.at.forEach((at, i) => events.push([at, 0, kind.to[i]]));
  ack.at.forEach((at, i) => events.push([at, 1, ack.to[i]]));
  edge.at.forEach((at, i) => events.push([at, 2, edge.to[i]]));
  events.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const line = { at: [], flight: [], window: [] };
  let [sent, acked, limit] = [0, data.from.length ? data.from[0] : 0, 0];
  events.forEach(([at, what, value], i) => {
    if (what === 0) sent = Math.max(sent, value);
    if (what === 1) acked = Math.max(acked, value);
    if (what === 2) limit = value;
    // Of what happens at the same time, only the outcome counts.
    if (i + 1 < events.length && events[i + 1][0] === at) return;
    line.at.push(at);
    line.flight.push(Math.max(0, sent - acked));
    line.window.push(limit > 0 ? Math.max(0, limit - acked) : NaN);
  });
  return line;
}

// The index of the first time that is not before `at`.
function locate(times, at) {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] < at) low = middle + 1;
    else high = middle;
  }
  return low;
}

function range(times) {
  return [Math.max(0, locate(times, view.from) - 1), Math.min(times.length, locate(times, view.to) + 1)];
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

// A canvas, prepared: its size in CSS pixels, and the functions from values to pixels.
function prepare(canvas, low, high) {
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  const inner = { width: width - MARGIN.left - MARGIN.right, height: height - MARGIN.top - MARGIN.bottom };
  const x = (at) => MARGIN.left + ((at - view.from) / (view.to - view.from)) * inner.width;
  const y = (value) => MARGIN.top + (1 - (value - low) / (high - low || 1)) * inner.height;
  return { pen, width, height, inner, x, y, low, high };
}

// Round values for about `count` labels.
function ticks(low, high, count) {
  const raw = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= raw) || raw;
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high; value += step) found.push(value);
  return { found, step };
}

function label(value, step) {
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return (value || 0).toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

function bytes(value, step, high) {
  const [unit, name] = high >= 3e9 ? [1e9, " GB"] : high >= 3e6 ? [1e6, " MB"] : high >= 3e3 ? [1e3, " kB"] : [1, " B"];
  return label(value / unit, step / unit) + name;
}

function axes(plot, format) {
  const { pen, width, height, inner, x, y } = plot;
  pen.font = "12px system-ui, sans-serif";
  pen.lineWidth = 1;
  const across = ticks(view.from / 1e6 + drawing.startsS, view.to / 1e6 + drawing.startsS, Math.max(2, inner.width / 90));
  pen.textAlign = "center";
  pen.textBaseline = "top";
  for (const seconds of across.found) {
    const at = x((seconds - drawing.startsS) * 1e6);
    pen.strokeStyle = colour("line");
    line(pen, at, MARGIN.top, at, MARGIN.top + inner.height);
    pen.fillStyle = colour("soft");
    pen.fillText(label(seconds, across.step) + " s", Math.min(at, width - 24), height - MARGIN.bottom + 6);
  }
  const down = ticks(plot.low, plot.high, Math.max(2, inner.height / 45));
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  for (const value of down.found) {
    pen.strokeStyle = colour("line");
    line(pen, MARGIN.left, y(value), width - MARGIN.right, y(value));
    pen.fillStyle = colour("soft");
    pen.fillText(format(value, down.step, plot.high), MARGIN.left - 5, y(value));
  }
  pen.save();
  pen.beginPath();
  pen.rect(MARGIN.left, MARGIN.top, inner.width, inner.height);
  pen.clip();
}

function line(pen, x1, y1, x2, y2) {
  pen.beginPath();
  pen.moveTo(x1, y1);
  pen.lineTo(x2, y2);
  pen.stroke();
}

function steps(plot, times, values, style, width) {
  const { pen, x, y } = plot;
  const [first, last] = range(times);
  pen.strokeStyle = style;
  pen.lineWidth = width;
  pen.beginPath();
  let before = NaN;
  for (let i = first; i < last; i++) {
    if (Number.isNaN(values[i])) continue;
    if (Number.isNaN(before)) pen.moveTo(x(times[i]), y(values[i]));
    else {
      pen.lineTo(x(times[i]), y(before));
      pen.lineTo(x(times[i]), y(values[i]));
    }
    before = values[i];
  }
  if (!Number.isNaN(before)) pen.lineTo(x(Math.min(view.to, drawing.end)), y(before));
  pen.stroke();
}

function drawSequence() {
  let [low, high] = [Infinity, -Infinity];
  for (const name of ["data", "again", "ack", "lost", "reordered", "spurious"]) {
    const kind = drawing.kinds[name];
    if (hidden.has(name)) continue;
    const [first, last] = [locate(kind.at, view.from), locate(kind.at, view.to)];
    for (let i = first; i < last; i++) {
      low = Math.min(low, kind.from[i]);
      high = Math.max(high, kind.to[i]);
    }
  }
  if (!(high > low)) [low, high] = [Math.min(low, 0) || 0, low + 1500 || 1500];
  const room = (high - low) * 0.04;
  const plot = prepare(id("sequence"), Math.max(0, low - room), high + room);
  axes(plot, bytes);
  for (const [name, , how] of KINDS) {
    if (hidden.has(name)) continue;
    const kind = drawing.kinds[name];
    if (how === "step") steps(plot, kind.at, kind.to, colour(name), name === "ack" ? 1.5 : 1);
    else drawBars(plot, kind, name, how);
  }
  plot.pen.restore();
  sequence = plot;
}

function drawBars(plot, kind, name, how) {
  const { pen, x, y } = plot;
  const [first, last] = range(kind.at);
  pen.strokeStyle = pen.fillStyle = colour(name);
  const hasSquares = how === "mark" && last - first <= MOST_SQUARES;
  pen.lineWidth = how === "shade" ? 4 : hasSquares ? 3 : name === "data" ? 1.5 : 2;
  pen.globalAlpha = how === "shade" ? 0.45 : 1;
  pen.beginPath();
  for (let i = first; i < last; i++) {
    const [at, top, bottom] = [x(kind.at[i]), y(kind.to[i]), y(kind.from[i])];
    pen.moveTo(at, Math.min(top, bottom - 1));
    pen.lineTo(at, bottom);
    if (hasSquares) pen.rect(at - 1.5, (top + bottom) / 2 - 1.5, 3, 3);
  }
  pen.stroke();
  pen.globalAlpha = 1;
}

// Acknowledged data per interval.
function drawThroughput() {
  const canvas = id("throughput");
  const span = view.to - view.from;
  const width = canvas.clientWidth - MARGIN.left - MARGIN.right;
  // Points that are drawn as one tell no more.
  const finest = Math.max(3 * drawing.stepUs, (INTERVAL * span) / Math.max(width, INTERVAL));
  const { at } = drawing.kinds.ack;
  const acked = (time) => drawing.acked[locate(at, time) - 1] || drawing.acked[0] || 0;
  const [times, rates] = [[], []];
  for (let from = Math.max(0, view.from); from < Math.min(view.to, drawing.end); from += finest) {
    times.push(from);
    rates.push(((acked(from + finest) - acked(from)) * 8) / finest);
  }
  const plot = prepare(canvas, 0, Math.max(1e-3, ...rates, drawing.bottleneck || 0) * 1.08);
  axes(plot, label);
  steps(plot, times, rates, colour("ack"), 1.5);
  const { pen, y } = plot;
  if (drawing.bottleneck) {
    pen.strokeStyle = pen.fillStyle = colour("edge");
    pen.setLineDash([4, 4]);
    line(pen, MARGIN.left, y(drawing.bottleneck), plot.width - MARGIN.right, y(drawing.bottleneck));
    pen.setLineDash([]);
    pen.textAlign = "right";
    pen.textBaseline = "top";
    pen.fillText("what the bottleneck carries", plot.width - MARGIN.right - 4, y(drawing.bottleneck) + 3);
  }
  if (!times.length || !drawing.acked.length) remark(plot, "no acknowledgment was captured");
  plot.pen.restore();
}

function remark({ pen, inner }, text) {
  pen.fillStyle = colour("soft");
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.fillText(text, MARGIN.left + inner.width / 2, MARGIN.top + inner.height / 2);
}

function drawFlight() {
  const { at, flight, window } = drawing.flight;
  const [first, last] = range(at);
  let high = 1;
  for (let i = first; i < last; i++) high = Math.max(high, flight[i]);
  // The window is often far above, and then outside of the plot.
  const plot = prepare(id("flight"), 0, high * 1.3);
  axes(plot, bytes);
  steps(plot, at, flight, colour("again"), 1.2);
  if (!hidden.has("edge")) steps(plot, at, window, colour("edge"), 1);
  plot.pen.restore();
}

function drawLateness() {
  const kind = drawing.kinds.reordered;
  const [first, last] = range(kind.at);
  let high = 1;
  for (let i = first; i < last; i++) high = Math.max(high, kind.late[i] / 1e3);
  const plot = prepare(id("lateness"), 0, high * 1.08);
  axes(plot, (value, step) => label(value, step) + " ms");
  const { pen, x, y } = plot;
  pen.fillStyle = colour("reordered");
  for (let i = first; i < last; i++) {
    pen.beginPath();
    pen.arc(x(kind.at[i]), y(kind.late[i] / 1e3), 2.5, 0, 7);
    pen.fill();
  }
  if (first >= last) remark(plot, "no packet was late here");
  plot.pen.restore();
}

let sequence = null;

function draw() {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(() => {
    scheduled = false;
    drawSequence();
    drawThroughput();
    drawFlight();
    drawLateness();
  });
}

function show(from, to) {
  const whole = drawing.end * 1.01;
  const span = Math.min(Math.max(to - from, LEAST_SPAN_US), whole);
  const start = Math.min(Math.max(from, -0.01 * whole), whole - span);
  view = { from: start, to: start + span };
  draw();
}

function showAll() {
  show(-0.01 * drawing.end, drawing.end * 1.01);
}

// Zooms by `factor` around the share `at` of the width.
function zoom(factor, at) {
  const span = view.to - view.from;
  const fixed = view.from + span * at;
  show(fixed - span * factor * at, fixed + span * factor * (1 - at));
}

function move(share) {
  const span = view.to - view.from;
  show(view.from + share * span, view.to + share * span);
}

// The share of the plot's width at a position on the page.
function share(canvas, clientX) {
  const box = canvas.getBoundingClientRect();
  return (clientX - box.left - MARGIN.left) / (box.width - MARGIN.left - MARGIN.right);
}

// Describes the packet that is nearest to a position on the first plot.
function describe(clientX, clientY) {
  if (!sequence) return;
  const box = id("sequence").getBoundingClientRect();
  const [px, py] = [clientX - box.left, clientY - box.top];
  let best = { distance: 18 };
  for (const [name, text, how] of KINDS) {
    if (hidden.has(name) || how === "step") continue;
    const kind = drawing.kinds[name];
    const [first, last] = range(kind.at);
    for (let i = first; i < last; i++) {
      const dx = Math.abs(sequence.x(kind.at[i]) - px);
      if (dx > 18) continue;
      const [top, bottom] = [sequence.y(kind.to[i]), sequence.y(kind.from[i])];
      const dy = Math.max(0, top - py, py - bottom);
      // A verdict on a packet is preferred to the packet.
      const distance = Math.hypot(dx, dy) - (how === "bar" ? 0 : 4);
      if (distance <= best.distance) best = { distance, name, text, kind, i };
    }
  }
  id("note").textContent = best.kind ? sentence(best) : "";
}

function sentence({ text, kind, i }) {
  const seconds = (kind.at[i] / 1e6 + drawing.startsS).toFixed(6);
  const many = kind.count && kind.count[i] > 1 ? ` and ${kind.count[i] - 1} more nearby` : "";
  let what = `Packet ${kind.frame[i]}${many} at ${seconds} s, bytes ${kind.from[i]} to ${kind.to[i]}: ${text}`;
  if (kind.places && kind.places[i]) what += `, by ${kind.places[i]} packets and ${(kind.late[i] / 1e3).toFixed(2)} ms`;
  return what + ".";
}

// Pointers on a canvas: one drags, two zoom.
function listen(canvas) {
  const pointers = new Map();
  canvas.addEventListener("pointerdown", (event) => {
    pointers.set(event.pointerId, event.clientX);
    canvas.setPointerCapture(event.pointerId);
    describe(event.clientX, event.clientY);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!pointers.has(event.pointerId)) {
      if (canvas.id === "sequence") describe(event.clientX, event.clientY);
      return;
    }
    const before = share(canvas, pointers.get(event.pointerId));
    const now = share(canvas, event.clientX);
    if (pointers.size === 1) {
      move(before - now);
    } else {
      const [other] = [...pointers].filter(([key]) => key !== event.pointerId).map(([, at]) => share(canvas, at));
      const factor = Math.abs(before - other) / Math.max(0.01, Math.abs(now - other));
      zoom(Math.min(4, Math.max(0.25, factor)), other);
    }
    pointers.set(event.pointerId, event.clientX);
  });
  for (const name of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(name, (event) => pointers.delete(event.pointerId));
  }
  canvas.addEventListener("dblclick", (event) => zoom(0.4, share(canvas, event.clientX)));
  canvas.addEventListener(
    "wheel",
    (event) => {
      // Without a key, the page scrolls until the plot has the focus.
      if (!event.ctrlKey && document.activeElement !== canvas) return;
      event.preventDefault();
      zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 300))), share(canvas, event.clientX));
    },
    { passive: false },
  );
  canvas.addEventListener("keydown", (event) => {
    const actions = {
      "+": () => zoom(0.5, 0.5),
      "=": () => zoom(0.5, 0.5),
      "-": () => zoom(2, 0.5),
      0: showAll,
      ArrowLeft: () => move(-0.2),
      ArrowRight: () => move(0.2),
    };
    if (!actions[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    actions[event.key]();
  });
}

function legend() {
  id("legend").replaceChildren();
  for (const [name, text] of KINDS) {
    const points = drawing.kinds[name].at.length;
    if (!points) continue;
    const box = document.createElement("input");
    box.type = "checkbox";
    box.checked = !hidden.has(name);
    box.addEventListener("change", () => {
      if (box.checked) hidden.delete(name);
      else hidden.add(name);
      draw();
    });
    const swatch = document.createElement("i");
    swatch.style.background = `var(--${name})`;
    const row = document.createElement("label");
    row.append(box, swatch, text);
    id("legend").append(row);
  }
}

function choose(number) {
  drawing = drawings[number];
  const thinned = [];
  if (drawing.stepUs) thinned.push(`Points within ${(drawing.stepUs / 1e3).toLocaleString("en")} ms are drawn as one.`);
  if (drawing.leftOut) thinned.push(`${drawing.leftOut.toLocaleString("en")} points are left out.`);
  if (thinned.length) thinned.push("Shorter captures, or --stream, show every packet.");
  id("thinned").textContent = thinned.join(" ");
  id("note").textContent = "";
  legend();
  showAll();
}

if (drawings.length) {
  id("plots").hidden = false;
  for (const canvas of document.querySelectorAll("canvas")) listen(canvas);
  id("in").addEventListener("click", () => zoom(0.5, 0.5));
  id("out").addEventListener("click", () => zoom(2, 0.5));
  id("left").addEventListener("click", () => move(-0.5));
  id("right").addEventListener("click", () => move(0.5));
  id("all").addEventListener("click", showAll);
  id("which").addEventListener("change", (event) => choose(Number(event.target.value)));
  window.addEventListener("resize", draw);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  choose(Number(id("which").value) || 0);
}
