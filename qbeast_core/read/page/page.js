"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const KINDS = { u1: Uint8Array, u4: Uint32Array, i4: Int32Array, f4: Float32Array, f8: Float64Array };
  const unpacked = ([kind, text]) => {
    const raw = atob(text), bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    return new KINDS[kind](bytes.buffer);
  };
  const node = (tag, text = "", attributes = {}) => {
    const made = document.createElement(tag);
    made.textContent = text;
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  };
  const drawn = (tag, attributes, text = "") => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.textContent = text;
    return made;
  };

  // ---- numbers for people
  const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
  const short = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
  const count = (n) => whole.format(n);
  const compact = (n) => {
    for (const [size, unit] of [[1e9, " B"], [1e6, " M"], [1e4, " k"]]) {
      if (n >= size) return short.format(n / (size === 1e4 ? 1e3 : size)) + unit;
    }
    return short.format(n);
  };
  const bytes = (n) => {
    for (const [size, unit] of [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"]]) {
      if (n >= size) return `${short.format(n / size)} ${unit}`;
    }
    return `${n} bytes`;
  };
  const share = (part, all) => {
    const percent = all ? (100 * part) / all : 0;
    if (part > 0 && percent < 0.01) return "<0.01 %";
    if (part < all && percent > 99.9) return ">99.9 %";
    return `${short.format(percent)} %`;
  };
  const about = (n) => (n < 1 ? "less than 1" : compact(Math.round(n)));
  const percent = (fraction) => `${Number((fraction * 100).toPrecision(6))} %`;
  const files = (n) => (n === 1 ? "1 file" : `${count(n)} files`);
  const cubes = (n) => (n === 1 ? "1 cube" : `${count(n)} cubes`);

  // ---- what the page knows
  const columns = data.columns, K = columns.length, fractions = data.fractions;
  const R = Object.fromEntries(
    Object.entries(data.readings).map(([name, array]) => [name, unpacked(array)]));
  const FILES = R.size_bytes.length, ENTRIES = R.weight.length;
  const OTHER_REVISION = 255, DEPTH = data.gridDepth, CELLS = 1 << DEPTH;
  const sum = (array) => array.reduce((all, n) => all + n, 0);
  const TOTAL = {
    files: FILES, bytes: sum(R.size_bytes), rows: R.rows.reduce((all, n) => all + Math.max(n, 0), 0),
  };
  const grids = new Map(data.grids.map((of) => [of.pair.join(), unpacked(of.rows)]));
  const tree = data.tree.cubes.map((c, i) => ({
    text: c[0], depth: c[1], begins: c[2], share: c[3], rows: c[4], below: c[5],
    lowest: c[6], weight: c[7], blocks: c[8], files: c[9], number: i,
  }));
  const treeLast = unpacked(data.tree.lastFrom), treeFirst = unpacked(data.tree.firstTo);
  const steps = (c) => columns[c].edges.length - 1;

  const state = {
    k: Math.max(0, fractions.indexOf(0.01)),
    from: columns.map(() => 0), to: columns.map((_, c) => steps(c) - 1),
    x: data.first[0] ?? 0, y: data.first.length > 1 ? data.first[1] : -1,
    cell: null, cube: null,
  };

  // ---- which files a choice reads: the same rules as the index has
  const WEIGHTS = 4294967295, LOWEST_WEIGHT = -2147483648;
  const limitOf = (fraction) =>
    fraction < 1 ? Math.trunc(fraction * WEIGHTS + LOWEST_WEIGHT) : Infinity;
  const hasRange = () => columns.some((_, c) => state.from[c] > 0 || state.to[c] < steps(c) - 1);
  const passes = (last, first, at) => {
    for (let c = 0; c < K; c++) {
      if (state.from[c] > last[at * K + c] || state.to[c] < first[at * K + c]) return false;
    }
    return true;
  };
  /** The lowest weight that a row in the range can have in each file; infinite if it has none. */
  const lowestWeights = () => {
    const lowest = new Float64Array(FILES).fill(Infinity), ranged = hasRange();
    let entry = 0;
    for (let f = 0; f < FILES; f++) {
      if (!R.is_indexed[f]) lowest[f] = -Infinity;
      for (const end = entry + R.entries[f]; entry < end; entry++) {
        if (R.weight[entry] < lowest[f] && (!ranged || passes(R.last_from, R.first_to, entry))) {
          lowest[f] = R.weight[entry];
        }
      }
    }
    return lowest;
  };
  /** Whether each file is read; a single file is read without a look at its statistics. */
  const filesRead = (fraction, lowest) => {
    const limit = limitOf(fraction), ranged = hasRange(), read = new Uint8Array(FILES);
    if (fraction === 1 && !ranged) return read.fill(1);
    let found = 0;
    for (let f = 0; f < FILES; f++) if (lowest[f] < limit) { read[f] = 1; found += 1; }
    if (ranged && found > 1) {
      for (let f = 0; f < FILES; f++) {
        if (read[f] && !passes(R.file_last_from, R.file_first_to, f)) read[f] = 0;
      }
    }
    return read;
  };
  const counted = (read) => {
    const found = { files: 0, bytes: 0, rows: 0, unknown: 0 };
    for (let f = 0; f < FILES; f++) {
      if (!read[f]) continue;
      found.files += 1;
      found.bytes += R.size_bytes[f];
      if (R.rows[f] < 0) found.unknown += 1; else found.rows += R.rows[f];
    }
    return found;
  };
  const quoted = (name) => (/^[A-Za-z_]\w*$/.test(name) ? name : "`" + name.replace(/`/g, "``") + "`");
  const whereText = () => {
    const parts = [];
    columns.forEach((column, c) => {
      const name = quoted(column.name), i = state.from[c], j = state.to[c];
      if (i > 0) parts.push(`${name} >= ${column.lower[i - 1][1]}`);
      if (j < steps(c) - 1) parts.push(`${name} ${column.upperOp} ${column.upper[j][1]}`);
    });
    return parts.join(" and ");
  };
  const rangeText = (c) => {
    const column = columns[c], i = state.from[c], j = state.to[c];
    const low = i > 0 ? column.lower[i - 1][0] : null;
    const high = j < steps(c) - 1 ? column.upper[j][0] : null;
    if (low === null && high === null) return "all values";
    if (high === null) return `${low} or more`;
    if (low === null) return column.upperOp === "<" ? `below ${high}` : `up to ${high}`;
    return column.upperOp === "<" ? `${low} to below ${high}` : `${low} to ${high}`;
  };

  // ---- colours
  const CIVIDIS = [
    "#00224e", "#003170", "#2a3f6d", "#434e6c", "#575d6d", "#6a6c71", "#7d7c78", "#918b78", "#a59c74",
    "#bcae6c", "#d2c060", "#e9d34e", "#fee838",
  ];
  const rgb = CIVIDIS.map((hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)));
  const darkMode = matchMedia("(prefers-color-scheme: dark)");
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  /** From the colour nearest to the page's own, for few rows, to the one farthest from it. */
  const ramp = (t) => {
    const place = (darkMode.matches ? t * 0.94 + 0.06 : 1 - t) * (rgb.length - 1);
    const i = Math.min(Math.floor(place), rgb.length - 2), part = place - i;
    return rgb[i].map((low, c) => Math.round(low + (rgb[i + 1][c] - low) * part));
  };
  const rampCss = (t) => `rgb(${ramp(Math.min(1, Math.max(0, t))).join()})`;
  const rampBar = () => {
    const bar = node("span", "", { class: "ramp", "aria-hidden": "true" });
    const stops = [0, 0.25, 0.5, 0.75, 1].map((t) => rampCss(t)).join();
    bar.style.background = `linear-gradient(90deg, ${stops})`;
    return bar;
  };
  const swatch = (color, fill) => {
    const made = node("span", "", { class: "swatch", "aria-hidden": "true" });
    made.style.borderColor = color;
    if (fill) made.style.background = fill;
    return made;
  };
  /** A swatch with its text, which stay on one line. */
  const entry = (text, color, fill) => {
    const made = node("span", "", { class: "entry" });
    made.append(swatch(color, fill), text);
    return made;
  };
  const canvasOf = (id) => {
    const canvas = $(id), ratio = devicePixelRatio || 1;
    const width = canvas.clientWidth, height = canvas.clientHeight;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = "12px system-ui, 'DejaVu Sans', sans-serif";
    return { pen, width, height };
  };

  // ---- the heat map
  let grid = null, gridSum = 0, marginX = null, marginY = null, pyramid = [];
  const single = () => state.y < 0;
  /** The rows of the shown pair of columns by cell, x first, and sums over its rows and columns. */
  const prepareGrid = () => {
    const rows = single() ? 1 : CELLS, pair = single() ? [state.x] : [state.x, state.y];
    const stored = grids.get([...pair].sort((a, b) => a - b).join());
    const turned = pair[0] > pair[1];
    grid = new Float64Array(CELLS * rows);
    marginX = new Float64Array(CELLS);
    marginY = new Float64Array(rows);
    for (let i = 0; i < CELLS; i++) {
      for (let j = 0; j < rows; j++) {
        const value = stored[turned ? j * CELLS + i : i * rows + j];
        grid[i * rows + j] = value;
        marginX[i] += value;
        marginY[j] += value;
      }
    }
    gridSum = sum(marginX);
    pyramid = [grid];
    for (let level = DEPTH - 1; level >= 0; level--) {
      const finer = pyramid[0], wide = 1 << level, high = single() ? 1 : wide;
      const coarse = new Float64Array(wide * high), fineHigh = single() ? 1 : 2 * high;
      for (let i = 0; i < 2 * wide; i++) {
        for (let j = 0; j < fineHigh; j++) {
          coarse[(i >> 1) * high + (single() ? 0 : j >> 1)] += finer[i * fineHigh + j];
        }
      }
      pyramid.unshift(coarse);
    }
  };
  /** Of the cells at each level, which ones are cubes in files read, and the share of rows read. */
  const readCells = (read) => {
    const flags = [], found = [];
    for (let level = 0; level <= DEPTH; level++) {
      const size = single() ? 1 << level : 1 << (2 * level);
      flags.push(new Uint8Array(size));
      found.push(new Float64Array(size));
    }
    let entry = 0;
    for (let f = 0; f < FILES; f++) {
      const end = entry + R.entries[f];
      if (!read[f]) { entry = end; continue; }
      for (; entry < end; entry++) {
        const depth = R.depth[entry];
        if (depth === OTHER_REVISION) continue;
        const shift = data.entryDepth - depth, x = R.cell[entry * K + state.x] >> shift;
        const at = single() ? x : (x << depth) + (R.cell[entry * K + state.y] >> shift);
        flags[depth][at] = 1;
        found[depth][at] += R.entry_rows[entry];
      }
    }
    const rows = single() ? 1 : CELLS, shares = new Float64Array(CELLS * rows);
    for (let i = 0; i < CELLS; i++) {
      for (let j = 0; j < rows; j++) {
        for (let level = 0; level <= DEPTH; level++) {
          const shift = DEPTH - level;
          const at = single() ? i >> shift : ((i >> shift) << level) + (j >> shift);
          if (found[level][at]) shares[i * rows + j] += found[level][at] / pyramid[level][at];
        }
      }
    }
    return { flags, shares };
  };
  const frame = () => {
    const canvas = $("map"), width = canvas.clientWidth, height = canvas.clientHeight;
    const side = width < 500 ? 26 : 44;
    const left = single() ? 64 : Math.min(110, 22 + longest(columns[state.y].marks)), bottom = 40;
    return single()
      ? { left, top: 12, width: width - left - 12, height: height - 12 - bottom, side: 0 }
      : { left, top: side + 6, width: width - left - side - 6, height: height - side - 6 - bottom, side };
  };
  const measure = document.createElement("canvas").getContext("2d");
  measure.font = "12px system-ui, 'DejaVu Sans', sans-serif";
  const longest = (marks) => Math.max(0, ...marks.map(([, text]) => measure.measureText(text).width));
  const cut = (name, most) => (name.length > most ? name.slice(0, most - 1) + "…" : name);
  const axisName = (c) => cut(columns[c].name, 32) + (
    columns[c].kind === "hashed" ? " (by hash, without order)" :
    columns[c].kind === "single" ? " (one value)" : "");
  const edge = (c, step) => columns[c].edges[step];
  const boxOf = () => {
    const end = (c, range) => (c < 0 ? [0, 1] : [edge(c, range.from[c]), edge(c, range.to[c] + 1)]);
    return { x: end(state.x, state), y: end(state.y, state) };
  };

  const drawMap = () => {
    const { pen, width, height } = canvasOf("map");
    const f = frame(), rows = single() ? 1 : CELLS, cellW = f.width / CELLS, cellH = f.height / rows;
    const muted = css("--muted"), line = css("--line"), surface = css("--surface");
    const outline = css("--outline"), halo = css("--halo"), boxColor = css("--box");
    let most = 0, least = Infinity;
    for (const value of grid) if (value > 0) { most = Math.max(most, value); least = Math.min(least, value); }
    // So that small differences look small.
    least = Math.max(Math.min(least, most / 4), most / 1e5);
    const tone = (value) => (most > least * 1.0001 ? Math.log(Math.max(value, least) / least) / Math.log(most / least) : 0.75);
    const fade = $("dim").checked && hasRange(), kept = current.ranged.shares;
    const alpha = (at) => (fade ? 0.15 + 0.85 * Math.min(1, 1.25 * kept[at]) : 1);

    pen.fillStyle = css("--page");
    pen.fillRect(f.left, f.top, f.width, f.height);
    if (single()) {
      for (let i = 0; i < CELLS; i++) {
        if (!grid[i]) continue;
        const tall = (f.height * grid[i]) / most;
        pen.globalAlpha = alpha(i);
        pen.fillStyle = rampCss(0.7);
        pen.fillRect(f.left + i * cellW, f.top + f.height - tall, Math.max(1, cellW - 1), tall);
      }
      pen.globalAlpha = 1;
    } else {
      const image = new ImageData(CELLS, CELLS);
      for (let i = 0; i < CELLS; i++) {
        for (let j = 0; j < CELLS; j++) {
          const at = i * CELLS + j, to = 4 * ((CELLS - 1 - j) * CELLS + i);
          if (!grid[at]) continue;
          image.data.set(ramp(tone(grid[at])), to);
          image.data[to + 3] = 255 * alpha(at);
        }
      }
      const small = document.createElement("canvas");
      small.width = small.height = CELLS;
      small.getContext("2d").putImageData(image, 0, 0);
      pen.imageSmoothingEnabled = false;
      pen.drawImage(small, f.left, f.top, f.width, f.height);
      // Sums along both edges.
      const mostX = Math.max(...marginX), mostY = Math.max(...marginY);
      pen.fillStyle = muted;
      for (let i = 0; i < CELLS; i++) {
        const tall = (f.side * marginX[i]) / (mostX || 1), wide = (f.side * marginY[i]) / (mostY || 1);
        pen.fillRect(f.left + i * cellW, f.top - 4 - tall, Math.max(1, cellW - 0.75), tall);
        pen.fillRect(f.left + f.width + 4, f.top + f.height - (i + 1) * cellH, wide, Math.max(1, cellH - 0.75));
      }
    }
    // The cubes of the files read. Of small ones only the ends of the area that they cover.
    if ($("outline").checked) {
      const wide = new Path2D(), fine = new Path2D();
      current.cells.flags.forEach((flags, level) => {
        const n = 1 << level, high = single() ? 1 : n, small = f.width / n < 18;
        const path = small ? fine : wide;
        const line = (x0, y0, x1, y1) => { path.moveTo(x0, y0); path.lineTo(x1, y1); };
        const has = (i, j) => small && i >= 0 && j >= 0 && i < n && j < high && flags[i * high + j];
        const left = (i) => Math.round(f.left + (i * f.width) / n) + 0.5;
        const low = (j) => Math.round(f.top + f.height - (j * f.height) / high) + 0.5;
        for (let at = 0; at < flags.length; at++) {
          if (!flags[at]) continue;
          const i = Math.floor(at / high), j = at % high;
          if (!has(i - 1, j)) line(left(i), low(j), left(i), low(j + 1));
          if (!has(i + 1, j)) line(left(i + 1), low(j), left(i + 1), low(j + 1));
          if (!has(i, j - 1)) line(left(i), low(j), left(i + 1), low(j));
          if (!has(i, j + 1)) line(left(i), low(j + 1), left(i + 1), low(j + 1));
        }
      });
      pen.lineWidth = 1; pen.strokeStyle = outline; pen.globalAlpha = 0.4; pen.stroke(fine);
      pen.lineWidth = 2.5; pen.strokeStyle = halo; pen.globalAlpha = 0.6; pen.stroke(wide);
      pen.lineWidth = 1; pen.strokeStyle = outline; pen.globalAlpha = 0.75; pen.stroke(wide);
      pen.globalAlpha = 1;
    }
    // The chosen range.
    const box = boxOf();
    if (hasRange()) {
      const x = f.left + box.x[0] * f.width, w = (box.x[1] - box.x[0]) * f.width;
      const y = f.top + (1 - box.y[1]) * f.height, h = (box.y[1] - box.y[0]) * f.height;
      pen.lineWidth = 5; pen.strokeStyle = halo; pen.strokeRect(x, y, w, h);
      pen.lineWidth = 3; pen.strokeStyle = boxColor; pen.strokeRect(x, y, w, h);
    }
    if (state.cell) {
      const [i, j] = state.cell;
      const x = f.left + i * cellW, y = single() ? f.top : f.top + f.height - (j + 1) * cellH;
      pen.lineWidth = 4; pen.strokeStyle = halo; pen.strokeRect(x, y, cellW, single() ? f.height : cellH);
      pen.lineWidth = 2; pen.strokeStyle = outline; pen.strokeRect(x, y, cellW, single() ? f.height : cellH);
    }
    // Scales.
    pen.strokeStyle = line; pen.lineWidth = 1;
    pen.strokeRect(f.left + 0.5, f.top + 0.5, f.width - 1, f.height - 1);
    pen.fillStyle = muted; pen.textBaseline = "top";
    let free = -Infinity;
    for (const [place, text] of columns[state.x].marks) {
      const wide = pen.measureText(text).width, middle = f.left + place * f.width;
      const x = Math.min(Math.max(middle - wide / 2, f.left - 20), width - wide);
      if (x < free) continue;
      pen.fillRect(middle, f.top + f.height, 1, 4);
      pen.fillText(text, x, f.top + f.height + 6);
      free = x + wide + 10;
    }
    pen.fillStyle = css("--ink");
    pen.textAlign = "center";
    pen.fillText(axisName(state.x), f.left + f.width / 2, height - 14);
    pen.save();
    pen.translate(1, f.top + f.height / 2); pen.rotate(-Math.PI / 2);
    pen.fillText(single() ? "rows" : axisName(state.y), 0, 0);
    pen.restore();
    pen.textAlign = "right"; pen.textBaseline = "middle"; pen.fillStyle = muted;
    let above = Infinity;
    const yMarks = single() ? [0, 0.5, 1].map((t) => [t, compact(most * t)]) : columns[state.y].marks;
    for (const [place, text] of yMarks) {
      const y = f.top + (1 - place) * f.height;
      if (y > above) continue;
      pen.fillRect(f.left - 4, y, 4, 1);
      pen.fillText(text, f.left - 6, Math.min(Math.max(y, f.top + 6), f.top + f.height - 6));
      above = y - 18;
    }
    pen.textAlign = "left";
    const legend = single() ? [] : [
      node("span", "rows in a cell:"), node("span", about(least)), rampBar(), node("span", about(most)),
      entry("no rows", line, css("--page")),
    ];
    if ($("outline").checked) legend.push(entry("cube in a file read", outline));
    if (hasRange()) legend.push(entry("the chosen range", boxColor));
    $("map-legend").replaceChildren(...legend);
  };

  const valueAt = (c, place) => {
    // The step that a coordinate falls in, by its own bounds.
    const column = columns[c];
    if (column.kind !== "ordered") return null;
    let step = 0;
    while (step < steps(c) - 1 && column.edges[step + 1] <= place) step += 1;
    const low = step > 0 ? column.lower[step - 1][0] : (column.marks[0] || [0, ""])[1];
    const last = column.marks[column.marks.length - 1] || [1, ""];
    const high = step < steps(c) - 1 ? column.upper[step][0] : last[1];
    return low === high ? `${column.name} ${low}` : `${column.name} ${low} to ${high}`;
  };
  const tellCell = () => {
    if (!state.cell) {
      $("map-status").textContent = !$("outline").checked ? "" : current.found.files === 1
        ? "The outlines are the cubes in the file that is read."
        : `The outlines are the cubes in the ${files(current.found.files)} that are read.`;
      return;
    }
    const [i, j] = state.cell, rows = single() ? 1 : CELLS;
    const names = [valueAt(state.x, (i + 0.5) / CELLS)];
    if (!single()) names.push(valueAt(state.y, (j + 0.5) / CELLS));
    const value = grid[i * rows + j], read = current.cells.shares[i * rows + j];
    const where = names.filter(Boolean).join(", ");
    $("map-status").textContent =
      `${where ? where + ": " : ""}${!value ? "no rows" : value < 1 ? "less than one row" : `about ${count(value)} rows`} (${share(value, gridSum)} of all)` +
      (value ? `; the choice reads ${share(Math.min(1, read), 1)} of them.` : ".");
  };

  // ---- the tree
  const symbols = Math.ceil(K / 6);
  const byText = new Map(tree.map((cube) => [cube.text, cube]));
  const parentOf = (cube) => byText.get(cube.text.slice(0, -symbols));
  const childOf = (cube) => tree.find((other) => other.depth === cube.depth + 1 && parentOf(other) === cube);
  const height = tree.reduce((deep, cube) => Math.max(deep, cube.depth), 0) + 1;
  const rootWeight = tree.length ? Math.max(1e-6, Math.min(0.5, ...tree.filter((c) => c.rows).map((c) => c.weight))) : 0.5;
  const top = Math.min(0.001, 10 ** Math.floor(Math.log10(rootWeight / 2)));
  const logPlace = (weight) => Math.min(1, Math.max(0, Math.log(Math.max(weight, top) / top) / -Math.log(top)));
  const byWeight = () => document.querySelector("input[name=scale]:checked").value === "weight";
  const cubeRead = (cube) =>
    cube.rows > 0 && passes(treeLast, treeFirst, cube.number) &&
    (cube.lowest * WEIGHTS + LOWEST_WEIGHT < limitOf(fractions[state.k]) || fractions[state.k] === 1);
  const fullness = (part) => (part <= 1 ? 0.75 * part : 0.75 + 0.25 * Math.min(1, part - 1));
  let boxes = [];
  const drawTree = () => {
    const { pen, width, height: tall } = canvasOf("tree");
    const left = 72, right = width < 500 ? 8 : 16, above = 8, below = 42;
    const w = width - left - right, h = tall - above - below, weights = byWeight();
    const muted = css("--muted"), line = css("--line"), surface = css("--surface");
    const place = (cube) => weights
      ? [logPlace(cube.lowest), Math.max(logPlace(cube.weight), logPlace(cube.lowest))]
      : [cube.depth / height, (cube.depth + 1) / height];
    boxes = [];
    pen.fillStyle = css("--page");
    pen.fillRect(left, above, w, h);
    let needed = 0;
    for (const cube of tree) {
      const [y0, y1] = place(cube), read = cubeRead(cube);
      const box = {
        cube, x: left + cube.begins * w, y: above + y0 * h,
        w: cube.share * w, h: Math.max(2, (y1 - y0) * h),
      };
      if (read) needed += 1;
      if (!cube.rows && weights) continue;
      boxes.push(box);
      const gap = box.w > 4 ? 1 : 0;
      pen.fillStyle = read ? rampCss(fullness(cube.rows / data.desired)) : css("--unread");
      pen.fillRect(box.x, box.y, Math.max(0.6, box.w - gap), box.h - (box.h > 4 ? 1 : 0));
    }
    const chosen = boxes.find((box) => box.cube === state.cube);
    if (chosen) {
      pen.lineWidth = 5; pen.strokeStyle = css("--halo");
      pen.strokeRect(chosen.x, chosen.y, Math.max(2, chosen.w), chosen.h);
      pen.lineWidth = 2.5; pen.strokeStyle = css("--box");
      pen.strokeRect(chosen.x, chosen.y, Math.max(2, chosen.w), chosen.h);
    }
    pen.fillStyle = muted; pen.textAlign = "right"; pen.textBaseline = "middle";
    if (weights) {
      for (let power = Math.round(Math.log10(top)); power <= 0; power++) {
        for (const digit of power < 0 && top > 1e-5 ? [1, 3] : [1]) {
          const at = digit * 10 ** power;
          if (at < top * 0.999) continue;
          const y = above + logPlace(at) * h;
          pen.fillRect(left - 4, y, 4, 1);
          pen.fillText(at <= top * 1.001 ? "0 %" : percent(at), left - 7, Math.max(y, above + 6));
        }
      }
      const y = above + logPlace(fractions[state.k]) * h;
      // Dashes on a solid halo, so that they show on cubes of any colour.
      pen.lineWidth = 5; pen.strokeStyle = css("--halo");
      pen.beginPath(); pen.moveTo(left, y); pen.lineTo(left + w, y); pen.stroke();
      pen.setLineDash([7, 5]);
      pen.lineWidth = 2.5; pen.strokeStyle = css("--box");
      pen.beginPath(); pen.moveTo(left, y); pen.lineTo(left + w, y); pen.stroke();
      pen.setLineDash([]);
    } else {
      for (let depth = 0; depth < height; depth++) {
        if (height > 14 && depth % Math.ceil(height / 14)) continue;
        pen.fillText(`level ${depth}`, left - 7, above + ((depth + 0.5) / height) * h);
      }
    }
    pen.textBaseline = "top"; pen.textAlign = "center";
    for (const part of width < 500 ? [0, 0.5, 1] : [0, 0.25, 0.5, 0.75, 1]) {
      pen.fillRect(left + part * w - (part === 1 ? 1 : 0), above + h, 1, 4);
      pen.textAlign = part === 1 ? "right" : part === 0 ? "left" : "center";
      pen.fillText(part === 1 ? `${compact(data.rows)} rows` : compact(data.rows * part), left + part * w, above + h + 7);
    }
    pen.textAlign = "center"; pen.fillStyle = css("--ink");
    pen.fillText("rows of the table, ordered by place", left + w / 2, tall - 15);
    pen.textAlign = "left";
    $("tree-legend").replaceChildren(
      node("span", "rows in the cube: 0"), rampBar(),
      node("span", `${compact(2 * data.desired)} or more`),
      entry(`${compact(data.desired)}, the desired size`, rampCss(0.75), rampCss(0.75)),
      entry("not read", line, css("--unread")),
    );
    if (!state.cube) {
      $("tree-status").textContent = `The choice needs ${count(needed)} of the ${cubes(tree.length)} drawn.` +
        (data.tree.leftOut ? ` The ${count(data.tree.leftOut)} smallest cubes are not drawn.` : "");
    }
  };
  const tellCube = () => {
    const cube = state.cube;
    if (!cube) return;
    const name = cube.depth ? `Cube ${cube.text}, level ${cube.depth}` : "The root, level 0";
    $("tree-status").textContent =
      `${name}: ${count(cube.rows)} rows (${count(cube.below)} with the cubes below), ` +
      `weights ${percent(Number(cube.lowest.toPrecision(3)))} to ${percent(Number(cube.weight.toPrecision(3)))}, ` +
      `${cube.blocks === 1 ? "1 block" : count(cube.blocks) + " blocks"} in ${files(cube.files)}. ` +
      (cubeRead(cube) ? "The choice needs it." : "The choice does not need it.");
  };

  // ---- the curve of what samples read
  const drawCurve = () => {
    const svg = $("curve"), width = Math.max(240, svg.clientWidth || 480), tall = 190;
    svg.setAttribute("viewBox", `0 0 ${width} ${tall}`);
    svg.style.height = `${tall}px`;
    const left = 46, bottom = 34, up = 10, w = width - left - 14, h = tall - up - bottom;
    const low = Math.log(fractions[0]);
    const x = (fraction) => left + (1 - Math.log(fraction) / low) * w;
    const y = (part) => up + (1 - part) * h;
    const parts = [];
    for (const part of [0, 0.25, 0.5, 0.75, 1]) {
      parts.push(drawn("line", { x1: left, x2: left + w, y1: y(part), y2: y(part), stroke: css("--line") }));
      parts.push(drawn("text", { x: left - 6, y: y(part) + 4, "text-anchor": "end" }, `${part * 100} %`));
    }
    for (const fraction of [0.0001, 0.001, 0.01, 0.1, 1]) {
      parts.push(drawn("text", { x: x(fraction), y: tall - 16, "text-anchor": fraction === 1 ? "end" : "middle" }, percent(fraction)));
    }
    parts.push(drawn("text", { x: left + w / 2, y: tall - 1, "text-anchor": "middle" }, "sample fraction"));
    const ideal = fractions.map((fraction) => `${x(fraction)},${y(fraction)}`).join(" ");
    parts.push(drawn("polyline", { points: ideal, fill: "none", stroke: css("--muted"), "stroke-width": 1.5, "stroke-dasharray": "2 4" }));
    const line = current.curve.map((part, k) => `${x(fractions[k])},${y(part)}`).join(" ");
    parts.push(drawn("polyline", { points: line, fill: "none", stroke: css("--read"), "stroke-width": 2.5, "stroke-linejoin": "round" }));
    parts.push(drawn("circle", { cx: x(fractions[state.k]), cy: y(current.curve[state.k]), r: 6, fill: css("--box"), stroke: css("--halo"), "stroke-width": 2 }));
    svg.replaceChildren(...parts);
    const at = [0.001, 0.01, 0.1].map((fraction) =>
      `${percent(fraction)}: ${share(current.curve[fractions.indexOf(fraction)], 1)}`).join(", ");
    $("curve-text").textContent =
      `Share of the table's bytes${hasRange() ? " with the chosen range" : ""}: ${at}. ` +
      "The dotted line is the share of all rows that a sample keeps: the least that a sample of the whole table can read.";
  };

  // ---- skew
  const drawSkew = () => {
    const values = Array.from(grid).sort((a, b) => b - a), all = gridSum || 1;
    const held = (part) => sum(values.slice(0, Math.max(1, Math.round(values.length * part)))) / all;
    const empty = values.filter((value) => !value).length / values.length;
    const shown = single() ? columns[state.x].name : `${columns[state.x].name} and ${columns[state.y].name}`;
    const ten = held(0.1);
    $("skew-text").textContent = !gridSum ? "This revision has no rows." :
      `The fullest tenth of the picture over ${shown} holds ${share(ten, 1)} of the rows; ` +
      `evenly spread rows would give 10 %. ` + (empty ? `${share(empty, 1)} of it is empty. ` : "") +
      (ten < 0.15 ? "That is even." : ten < 0.4 ? "That is somewhat skewed." : "That is strongly skewed.");
    const svg = $("skew"), width = Math.max(240, svg.clientWidth || 480), each = 30;
    const places = [0.01, 0.1, 0.25, 0.5], left = 96, w = width - left - 56;
    svg.setAttribute("viewBox", `0 0 ${width} ${places.length * each + 6}`);
    svg.style.height = `${places.length * each + 6}px`;
    const parts = [];
    places.forEach((part, i) => {
      const y = i * each + 4, holds = held(part);
      parts.push(drawn("text", { x: left - 8, y: y + 14, "text-anchor": "end" }, `fullest ${part * 100} %`));
      parts.push(drawn("rect", { x: left, y, width: w, height: 18, fill: css("--unread"), rx: 3 }));
      parts.push(drawn("rect", { x: left, y, width: w * holds, height: 18, fill: css("--read"), rx: 3 }));
      parts.push(drawn("line", { x1: left + w * part, x2: left + w * part, y1: y - 3, y2: y + 21, stroke: css("--box"), "stroke-width": 3 }));
      parts.push(drawn("text", { x: left + w + 8, y: y + 14 }, share(holds, 1)));
    });
    svg.replaceChildren(...parts);
    const [small, median, large] = data.fileBytes;
    $("skew-help").textContent = "The marks show evenly spread rows. Skew does no harm: where rows are dense, the tree has " +
      `more levels. Files of this revision have ${bytes(small)} to ${bytes(large)}, the median is ${bytes(median)}.`;
  };

  // ---- everything that follows the choice
  const current = { lowest: null, read: null, cells: null, ranged: null, curve: [] };
  const refresh = (rangeChanged) => {
    if (rangeChanged || !current.lowest) {
      current.lowest = lowestWeights();
      current.curve = fractions.map((fraction) =>
        TOTAL.bytes ? counted(filesRead(fraction, current.lowest)).bytes / TOTAL.bytes : 0);
    }
    const fraction = fractions[state.k];
    current.read = filesRead(fraction, current.lowest);
    current.cells = readCells(current.read);
    if (rangeChanged || !current.ranged) current.ranged = readCells(filesRead(1, current.lowest));
    const found = counted(current.read), where = whereText();
    current.found = found;
    const lines = [["files", count], ["bytes", bytes], ["rows", count]];
    $("counts").tBodies[0].replaceChildren(...lines.map(([name, text]) => {
      const row = node("tr"), bar = node("td"), fill = node("i"), frame = node("span", "", { class: "bar" });
      const first = node("td"), unit = name === "bytes" ? "" : ` ${found[name] === 1 ? name.slice(0, -1) : name}`;
      first.append(node("b", text(found[name]), { "data-count": name, "data-value": found[name] }), unit);
      fill.style.width = `${TOTAL[name] ? (100 * found[name]) / TOTAL[name] : 0}%`;
      frame.append(fill);
      bar.append(frame);
      bar.setAttribute("aria-hidden", "true");
      row.append(first, node("td", text(TOTAL[name])), node("td", share(found[name], TOTAL[name])), bar);
      return row;
    }));
    const what = fraction === 1 ? (where ? "The range" : "The whole table") : `A ${percent(fraction)} sample${where ? " of the range" : ""}`;
    const kept = where ? `the rows ${fraction < 1 ? "of the sample " : ""}in the range` : `about ${count(Math.round(fraction * TOTAL.rows))} rows`;
    $("summary").textContent = where || fraction < 1
      ? `${what} reads ${count(found.files)} of ${files(FILES)}: ${bytes(found.bytes)} of ${bytes(TOTAL.bytes)}. ` +
        `Spark reads a file whole, then keeps ${kept}.`
      : `${what} is ${files(FILES)} with ${bytes(TOTAL.bytes)}.`;
    const text = JSON.stringify(where);
    $("query").textContent = fraction === 1
      ? `table.dataframe()${where ? `.where(${text})` : ""}`
      : `table.sample(${fraction}${where ? `, where=${text}` : ""})`;
    $("query").dataset.where = where;
    $("query").dataset.fraction = fraction;
    const notes = [];
    const unindexed = R.is_indexed.reduce((all, is) => all + (is ? 0 : 1), 0);
    if (unindexed) notes.push(`The index does not describe ${files(unindexed)}. Every sample reads them; optimize the table to change that.`);
    if (data.otherFiles) notes.push(`${files(data.otherFiles)} of other revisions are counted and not drawn.`);
    if (found.unknown) notes.push(`The log does not say how many rows ${files(found.unknown)} of these have.`);
    $("notes").textContent = notes.join(" ");
    $("fraction").value = state.k;
    $("fraction-value").textContent = fraction === 1 ? "100 % (all rows)" : percent(fraction);
    $("fraction").setAttribute("aria-valuetext", `${percent(fraction)}, reads ${count(found.files)} of ${files(FILES)}`);
    for (const button of $("presets").children) {
      button.setAttribute("aria-pressed", String(Number(button.dataset.k) === state.k));
    }
    for (const update of rangeUpdates) update();
    $("reset").disabled = !hasRange();
    drawAll();
  };
  let waiting = 0;
  const drawAll = () => {
    if (waiting) return;
    waiting = requestAnimationFrame(() => {
      waiting = 0;
      drawMap(); drawTree(); drawCurve(); drawSkew(); tellCell(); tellCube();
      document.documentElement.dataset.drawn = "yes";
    });
  };

  // ---- controls
  let rangeUpdates = [];
  const setRange = (c, from, to) => {
    const last = steps(c) - 1;
    state.from[c] = Math.min(Math.max(0, from), last);
    state.to[c] = Math.min(Math.max(state.from[c], to), last);
  };
  const makeRanges = () => {
    rangeUpdates = [];
    const shown = single() ? [state.x] : [state.x, state.y];
    $("ranges").replaceChildren(...shown.map((c) => {
      const column = columns[c], set = node("fieldset", "", { class: "field" });
      const value = node("output");
      set.append(node("legend", `Range of ${column.name}`), value);
      if (column.kind !== "ordered" || steps(c) < 2) {
        value.textContent = "all values";
        const text = column.kind === "hashed"
          ? "This column is stored by the hash of its values. Filters with = skip files, ranges do not."
          : "This column has too few values for a range.";
        set.append(node("p", text, { class: "help both" }));
        return set;
      }
      const slider = (name) => {
        const id = `${name}-${c}`, row = node("div", "", { class: "ends" });
        const input = node("input", "", { type: "range", min: 0, max: steps(c) - 1, step: 1, id });
        row.append(node("label", name, { for: id }), input);
        input.setAttribute("aria-label", `${column.name}, ${name}`);
        input.addEventListener("input", () => {
          const at = Number(input.value);
          if (name === "from") setRange(c, at, Math.max(at, state.to[c]));
          else setRange(c, Math.min(at, state.from[c]), at);
          refresh(true);
        });
        set.append(row);
        return input;
      };
      const from = slider("from"), to = slider("to");
      rangeUpdates.push(() => {
        from.value = state.from[c];
        to.value = state.to[c];
        const text = rangeText(c);
        value.textContent = text;
        from.setAttribute("aria-valuetext", text);
        to.setAttribute("aria-valuetext", text);
      });
      return set;
    }));
  };
  const makePair = () => {
    if (K < 3) return;
    const options = (name, c, other) => {
      const label = node("label", `${name} `), select = node("select");
      columns.forEach((column, i) => {
        const option = node("option", cut(column.name, 32), { value: i });
        const pair = [i, other].sort((a, b) => a - b).join();
        option.disabled = i === other || !grids.has(pair);
        option.selected = i === c;
        select.append(option);
      });
      label.append(select);
      select.addEventListener("change", () => {
        state[name === "Across" ? "x" : "y"] = Number(select.value);
        columns.forEach((_, i) => { if (i !== state.x && i !== state.y) setRange(i, 0, Infinity); });
        state.cell = null;
        showPair();
        const again = $("pair").querySelectorAll("select")[name === "Across" ? 0 : 1];
        again.focus();
      });
      return label;
    };
    $("pair").replaceChildren(options("Across", state.x, state.y), options("Upwards", state.y, state.x));
  };
  const showPair = () => {
    prepareGrid();
    makePair();
    makeRanges();
    const names = single() ? columns[state.x].name : `${columns[state.x].name} and ${columns[state.y].name}`;
    $("map-text").textContent = `Rows by ${names}. ` + (single()
      ? "A taller bar has more rows."
      : `${darkMode.matches ? "Brighter" : "Darker"} cells have more rows. The bars along the edges add the rows up for each column.`);
    refresh(true);
  };

  const cellAt = (event) => {
    const area = $("map").getBoundingClientRect(), f = frame();
    const x = (event.clientX - area.left - f.left) / f.width;
    const y = 1 - (event.clientY - area.top - f.top) / f.height;
    return { x, y, inside: x >= 0 && x < 1 && y >= 0 && y < 1 };
  };
  const stepAt = (c, place) => {
    let step = 0;
    while (step < steps(c) - 1 && columns[c].edges[step + 1] <= place) step += 1;
    return step;
  };
  let dragged = null;
  $("map").addEventListener("pointerdown", (event) => {
    const at = cellAt(event);
    if (at.inside && event.button === 0) { dragged = at; $("map").setPointerCapture(event.pointerId); }
  });
  $("map").addEventListener("pointermove", (event) => {
    const at = cellAt(event);
    if (dragged && Math.hypot(at.x - dragged.x, at.y - dragged.y) > 0.015) {
      for (const [c, axis] of single() ? [[state.x, "x"]] : [[state.x, "x"], [state.y, "y"]]) {
        setRange(c, stepAt(c, Math.min(at[axis], dragged[axis])), stepAt(c, Math.max(at[axis], dragged[axis])));
      }
      state.cell = null;
      refresh(true);
    } else if (at.inside) {
      state.cell = [Math.floor(at.x * CELLS), single() ? 0 : Math.floor(at.y * CELLS)];
      drawAll();
    }
  });
  $("map").addEventListener("pointerup", () => { dragged = null; });
  $("map").addEventListener("pointerleave", () => {
    if (document.activeElement !== $("map")) { state.cell = null; drawAll(); }
  });
  const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
  $("map").addEventListener("keydown", (event) => {
    const move = ARROWS[event.key];
    if (!move) return;
    event.preventDefault();
    const [i, j] = state.cell || [CELLS / 2 - move[0], CELLS / 2 - move[1]];
    const inside = (n) => Math.min(CELLS - 1, Math.max(0, n));
    state.cell = [inside(i + move[0]), single() ? 0 : inside(j + move[1])];
    drawAll();
  });
  $("tree").addEventListener("pointermove", (event) => {
    const area = $("tree").getBoundingClientRect();
    const x = event.clientX - area.left, y = event.clientY - area.top;
    const hit = boxes.findLast((b) => x >= b.x && x < b.x + Math.max(1, b.w) && y >= b.y && y < b.y + b.h);
    state.cube = hit ? hit.cube : null;
    drawAll();
  });
  $("tree").addEventListener("pointerleave", () => { state.cube = null; drawAll(); });
  $("tree").addEventListener("keydown", (event) => {
    if (!ARROWS[event.key] || !tree.length) return;
    event.preventDefault();
    const cube = state.cube, level = cube ? tree.filter((other) => other.depth === cube.depth) : [];
    const at = level.indexOf(cube);
    state.cube = !cube ? tree[0]
      : event.key === "ArrowUp" ? parentOf(cube) || cube
      : event.key === "ArrowDown" ? childOf(cube) || cube
      : level[at + (event.key === "ArrowLeft" ? -1 : 1)] || cube;
    drawAll();
  });
  $("fraction").max = fractions.length - 1;
  $("fraction").addEventListener("input", () => { state.k = Number($("fraction").value); refresh(false); });
  for (const fraction of [0.001, 0.01, 0.1, 1]) {
    const k = fractions.indexOf(fraction);
    const button = node("button", fraction === 1 ? "All rows" : percent(fraction), { type: "button", "data-k": k });
    button.addEventListener("click", () => { state.k = k; refresh(false); });
    $("presets").append(button);
  }
  $("reset").addEventListener("click", () => {
    columns.forEach((_, c) => setRange(c, 0, Infinity));
    refresh(true);
    document.querySelector("#ranges input")?.focus();
  });
  for (const id of ["outline", "dim"]) $(id).addEventListener("change", drawAll);
  for (const radio of document.getElementsByName("scale")) radio.addEventListener("change", drawAll);
  darkMode.addEventListener("change", showPair);
  new ResizeObserver(drawAll).observe(document.querySelector("main"));

  // ---- what never changes
  $("subtitle").textContent = data.subtitle;
  const fact = (name, value) => {
    const made = node("div");
    made.append(node("dt", name), node("dd", value));
    return made;
  };
  $("facts").append(
    fact("Indexed columns", columns.map((column) => column.name).join(", ")),
    fact("Rows", count(TOTAL.rows)), fact("Files", count(FILES)), fact("Size", bytes(TOTAL.bytes)),
    fact("Cubes", count(data.cubes)), fact("Levels", count(data.tree.levels.length)),
    fact("Desired cube size", `${count(data.desired)} rows`),
  );
  if (data.sampleKey.length) $("facts").append(fact("Sample key", data.sampleKey.join(", ")));
  $("levels").tBodies[0].append(...data.tree.levels.map(([depth, n, rows, median, lowest]) => {
    const row = node("tr");
    row.append(node("td", depth), node("td", count(n)), node("td", count(rows)),
      node("td", share(rows, data.rows)), node("td", count(median)), node("td", share(lowest, 1)));
    return row;
  }));
  $("levels-text").textContent = `A cube passes rows on once it has about ${count(data.desired)}. ` +
    "Cubes of the last levels can have fewer.";
  showPair();
})();
