// The picture of kompute_py.notebook.play with its buttons. The browser asks for each frame when it is due and
// the picture is in view. If a frame takes the kernel longer than it may, the browser asks for the next one after
// the answer; else it asks for up to MOST_ASKED, as answers from afar take their time. So a slow kernel draws fewer
// frames, and none wait in a queue.

const MOST_ASKED = 3;

const STYLE = `
.kp-play { display: inline-block; max-width: 100%; }
.kp-play canvas { display: block; max-width: 100%; touch-action: none; cursor: crosshair; }
.kp-play .kp-bar { display: flex; gap: 6px; align-items: center; margin-top: 4px; }
.kp-play button { width: 2.4em; height: 2em; padding: 0; cursor: pointer; border-radius: 4px;
  border: 1px solid rgba(128,128,128,.5); background: transparent; color: inherit; font-size: 13px; }
.kp-play button:hover { background: rgba(128,128,128,.2); }
.kp-play .kp-told { opacity: .75; font-size: 12px; font-variant-numeric: tabular-nums; margin-left: 6px; }
.kp-play pre { color: #e53935; white-space: pre-wrap; margin: 6px 0 0; }
`;

const SIGNS = {
  play: '<path d="M4 2.5v11l9-5.5z"/>',
  pause: '<path d="M3.5 2.5h3v11h-3zM9.5 2.5h3v11h-3z"/>',
  step: '<path d="M3 2.5v11l7-5.5zM11 2.5h2v11h-2z"/>',
  reset: '<path d="M8 3V.5L3.5 4 8 7.5V5a4 4 0 1 1-4 4H2a6 6 0 1 0 6-6z"/>',
};

function sign(name) {
  return `<svg width="12" height="12" viewBox="0 0 16 16" fill="currentColor" aria-hidden="true">${SIGNS[name]}</svg>`;
}

export default () => {
  const views = new Set();
  const arrivals = [];
  const mouse = { x: 0, y: 0, held: false, presses: 0, pressed_x: 0, pressed_y: 0 };
  let shown = null; // the last frame: {pixels, columns, rows, zoom, time, frame}
  let waiting = 0; // questions without an answer of the kernel
  let took = Infinity; // milliseconds, the kernel for the last frame
  let moved = false; // the mouse, since the last question
  let due = 0;
  let running = false;
  let model = null;

  function ask(what) {
    waiting += 1;
    moved = false;
    model.send({ ask: what, mouse: { ...mouse } });
  }

  function turn(now) {
    if (!views.size) {
      running = false;
      return;
    }
    requestAnimationFrame(turn);
    if (![...views].some((view) => view.visible)) return;
    if (model.get("playing")) {
      const between = 1000 / model.get("fps");
      // A frame that comes a little early is better than one that waits for the screen's next.
      if (now < due - 4 || waiting >= (took < between ? MOST_ASKED : 1)) return;
      due = now - due > between ? now + between : due + between;
      ask("frame");
    } else if (moved && !waiting && model.get("follows_mouse")) {
      ask("same");
    }
  }

  function draw(view) {
    if (!shown) return;
    const { canvas } = view;
    if (canvas.width !== shown.columns || canvas.height !== shown.rows) {
      canvas.width = shown.columns;
      canvas.height = shown.rows;
      canvas.style.width = `${shown.columns * shown.zoom}px`;
      canvas.style.aspectRatio = `${shown.columns} / ${shown.rows}`;
      canvas.style.imageRendering = shown.zoom > 1 ? "pixelated" : "auto";
    }
    canvas.getContext("2d").putImageData(new ImageData(shown.pixels, shown.columns, shown.rows), 0, 0);
    const rate = model.get("playing") && arrivals.length > 1
      ? ` · ${((1000 * (arrivals.length - 1)) / (arrivals.at(-1) - arrivals[0])).toFixed(0)} frames/s` : "";
    view.told.textContent = `${shown.time.toFixed(2)} s · frame ${shown.frame}${rate}`;
  }

  function answered(message, buffers) {
    if (message.answer) waiting -= 1;
    if (!buffers.length) return;
    took = message.took;
    const data = buffers[0];
    const pixels = new Uint8ClampedArray(data.buffer ?? data, data.byteOffset ?? 0, data.byteLength);
    shown = { ...message, pixels };
    const now = performance.now();
    arrivals.push(now);
    while (arrivals.length > 2 && arrivals[0] < now - 1000) arrivals.shift();
    for (const view of views) draw(view);
  }

  function labels() {
    const playing = model.get("playing");
    if (!playing) arrivals.length = 0;
    for (const { main, canvas, error, box } of views) {
      main.innerHTML = sign(playing ? "pause" : "play");
      main.title = playing ? "Pause" : "Play";
      main.setAttribute("aria-label", main.title);
      canvas.setAttribute("aria-label", model.get("description"));
      error.textContent = model.get("error");
      error.hidden = !model.get("error");
      box.dataset.playing = playing;
    }
  }

  function follow(canvas) {
    const place = (event) => {
      const at = canvas.getBoundingClientRect();
      const scale = model.get("scale");
      return [((event.clientX - at.left) / at.width) * canvas.width * scale,
        ((event.clientY - at.top) / at.height) * canvas.height * scale];
    };
    canvas.addEventListener("pointermove", (event) => {
      [mouse.x, mouse.y] = place(event);
      moved = true;
    });
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      [mouse.x, mouse.y] = [mouse.pressed_x, mouse.pressed_y] = place(event);
      mouse.held = true;
      mouse.presses += 1;
      moved = true;
      event.preventDefault();
    });
    for (const end of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(end, () => {
        mouse.held = false;
        moved = true;
      });
    }
  }

  return {
    initialize({ model: given }) {
      model = given;
      model.on("msg:custom", answered);
      model.on("change", labels);
      return () => {
        model.off("msg:custom", answered);
        model.off("change", labels);
        views.clear();
      };
    },
    render({ el }) {
      const box = document.createElement("div");
      box.className = "kp-play";
      box.innerHTML = `<style>${STYLE}</style><canvas role="img" width="1" height="1"></canvas>
        <div class="kp-bar"><button class="kp-main"></button>
        <button class="kp-step" title="One frame on" aria-label="One frame on">${sign("step")}</button>
        <button class="kp-reset" title="Back to the start" aria-label="Back to the start">${sign("reset")}</button>
        <span class="kp-told"></span></div><pre role="alert" hidden></pre>`;
      el.appendChild(box);
      const [canvas, main, error, told] = ["canvas", ".kp-main", "pre", ".kp-told"].map((each) => box.querySelector(each));
      const view = { box, canvas, main, error, told, visible: true };
      const press = (name) => model.send({ press: name, mouse: { ...mouse } });
      main.addEventListener("click", () => press(model.get("playing") ? "pause" : "play"));
      box.querySelector(".kp-step").addEventListener("click", () => press("step"));
      box.querySelector(".kp-reset").addEventListener("click", () => press("reset"));
      follow(canvas);
      const watcher = new IntersectionObserver((entries) => {
        view.visible = entries.at(-1).isIntersecting;
      });
      watcher.observe(box);
      views.add(view);
      labels();
      if (shown) draw(view);
      else ask("last");
      if (!running) {
        running = true;
        requestAnimationFrame(turn);
      }
      return () => {
        watcher.disconnect();
        views.delete(view);
        if (!views.size) model.send({ press: "pause" });
      };
    },
  };
};
