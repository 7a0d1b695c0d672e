// Makes pages live. Everything that a page is for works without it.
(() => {
  "use strict";
  const element = (name, className, text) => {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  };

  // A button to copy each command.
  if (navigator.clipboard) {
    for (const block of document.querySelectorAll("pre.copy")) {
      const button = element("button", "copier", "Copy");
      button.type = "button";
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(block.querySelector("code").textContent);
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = "Copy"; }, 1500);
      });
      block.after(button);
    }
  }

  // The forms of a reference call an operation of this server. A key stays in the open page.
  const ANSWER_CHARS_MAX = 20000;
  const CALL_TIMEOUT_MS = 60000;
  const call = async (form) => {
    const fields = new FormData(form);
    const body = fields.get("body");
    fields.delete("body");
    let path = form.dataset.path;
    const query = new URLSearchParams();
    for (const [name, value] of fields) {
      if (path.includes(`{${name}}`)) path = path.replace(`{${name}}`, encodeURIComponent(value));
      else if (value !== "") query.append(name, value);
    }
    const headers = { accept: "application/json" };
    const key = form.querySelector(".key").value.trim();
    if (key) headers["x-api-key"] = key;
    if (body !== null) headers["content-type"] = "application/json";
    const address = query.size ? `${path}?${query}` : path;
    const answer = await fetch(address, { method: form.dataset.method, headers, body: body ?? undefined, signal: AbortSignal.timeout(CALL_TIMEOUT_MS) });
    const status = `${answer.status} ${answer.statusText}`.trim();
    const type = answer.headers.get("content-type") ?? "";
    if (type && !/^text\/|json|xml/.test(type)) {
      // Such a file can be large, and nobody reads its bytes.
      await answer.body?.cancel();
      return { status, text: `A file of type ${type}, which is not shown. The command for curl gets it.` };
    }
    let text = await answer.text();
    try {
      text = JSON.stringify(JSON.parse(text), null, 2);
    } catch {
      // A text that is no JSON is shown as it is.
    }
    return { status, text };
  };
  for (const block of document.querySelectorAll("details.try")) {
    const form = block.querySelector("form");
    const said = form.querySelector("[role=status]");
    const shown = form.querySelector("pre");
    block.hidden = false;
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      said.textContent = "Calling…";
      try {
        const { status, text } = await call(form);
        said.textContent = `Status ${status}`;
        const isLong = text.length > ANSWER_CHARS_MAX;
        shown.firstElementChild.textContent = isLong ? `${text.slice(0, ANSWER_CHARS_MAX)}\n… the answer is cut here` : text;
        shown.hidden = text === "";
      } catch (error) {
        said.textContent = `There was no answer: ${error.message}`;
        shown.hidden = true;
      }
    });
    form.querySelector(".key").addEventListener("change", (event) => {
      for (const other of document.querySelectorAll("details.try .key")) other.value = event.target.value;
    });
  }

  // The live list.
  const list = document.getElementById("ticker");
  const pause = document.getElementById("pause");
  const state = document.getElementById("live-state");
  if (!list || !pause || !window.EventSource) return;
  const shown = Number(list.dataset.shown) || 12;
  let waiting = [];
  let waitingCount = 0;
  let source = null;
  let isPaused = false;

  const show = (change) => {
    const item = element("li", "fresh");
    const row = element("span", "row");
    row.append(element("span", "soft", change.service), element("span", change.event === "new" ? "event new" : "event", change.event));
    const link = element("a");
    link.href = change.href;
    link.append(element("bdi", "", change.title));
    const time = element("time", "", new Date(change.at).toISOString().slice(11, 19) + " UTC");
    time.dateTime = change.at;
    time.title = change.at;
    const at = element("span", "soft");
    at.append(time);
    item.append(row, link);
    if (change.details) {
      const details = element("span", "what");
      details.append(element("bdi", "", change.details));
      item.append(details);
    }
    item.append(at);
    list.prepend(item);
    while (list.children.length > shown) list.lastElementChild.remove();
  };
  const say = () => {
    const newer = waitingCount === 1 ? "1 newer change waits" : `${waitingCount} newer changes wait`;
    if (isPaused) state.textContent = waitingCount ? `Paused. ${newer}${waitingCount > shown ? `; the last ${shown} will be shown` : ""}.` : "Paused.";
    else state.textContent = source && source.readyState === EventSource.OPEN ? "Changes appear here as they are recorded." : "Connecting…";
  };
  const RECONNECT_MS = 10000;
  const connect = () => {
    const opened = new EventSource(list.dataset.source);
    source = opened;
    opened.addEventListener("open", say);
    opened.addEventListener("error", () => {
      // The browser connects again by itself, but not after a refusal.
      if (opened === source && opened.readyState === EventSource.CLOSED) {
        source = null;
        setTimeout(() => { if (!source && !document.hidden) connect(); }, RECONNECT_MS);
      }
      say();
    });
    opened.addEventListener("message", (message) => {
      const change = JSON.parse(message.data);
      if (isPaused) {
        waitingCount += 1;
        waiting.push(change);
        waiting = waiting.slice(-shown);
      } else show(change);
      say();
    });
  };
  pause.hidden = false;
  pause.addEventListener("click", () => {
    isPaused = !isPaused;
    pause.textContent = isPaused ? "Continue" : "Pause";
    if (!isPaused) {
      waiting.forEach(show);
      waiting = [];
      waitingCount = 0;
    }
    say();
  });
  // A page that nobody looks at needs no connection.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden && source) {
      source.close();
      source = null;
    } else if (!document.hidden && !source) connect();
    say();
  });
  connect();
  say();
})();
