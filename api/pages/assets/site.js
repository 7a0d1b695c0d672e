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

  // The live list.
  const list = document.getElementById("ticker");
  const pause = document.getElementById("pause");
  const state = document.getElementById("live-state");
  if (!list || !pause || !window.EventSource) return;
  const shown = Number(list.dataset.shown) || 12;
  let waiting = [];
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
    item.append(row, link, at);
    list.prepend(item);
    while (list.children.length > shown) list.lastElementChild.remove();
  };
  const say = () => {
    if (isPaused) state.textContent = waiting.length ? `Paused. ${waiting.length} newer changes wait.` : "Paused.";
    else state.textContent = source && source.readyState === EventSource.OPEN ? "Changes appear here as they are recorded." : "Connecting…";
  };
  const connect = () => {
    source = new EventSource(list.dataset.source);
    source.addEventListener("open", say);
    source.addEventListener("error", say);
    source.addEventListener("message", (message) => {
      const change = JSON.parse(message.data);
      if (isPaused) {
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
