// On pages with live cells: a bar with Run and Edit at each, and a button at each exercise that has a check. All else
// (client.js, Python, the editor) is loaded when one of them is pressed.
(() => {
  const script = document.currentScript, { page, words } = script.dataset, say = JSON.parse(words);
  if (location.protocol === "file:" || !("DecompressionStream" in window)) {
    document.documentElement.classList.add("live-off"); // browsers start no worker from a disk
    return;
  }
  const act = async (bar, what) => {
    try {
      const client = await import(new URL("client.js", script.src));
      await (await client.connect(page, script.src)).open(bar, what);
    } catch (error) {
      bar.querySelector("[role=status]").textContent = `${say.failed} ${error.message}`;
    }
  };
  const bar = (kind, place, buttons) => {
    const made = document.createElement("div");
    made.className = "live-bar";
    made.dataset.kind = kind;
    made.setAttribute("role", "group");
    made.setAttribute("aria-label", say[kind]);
    for (const name of buttons) {
      const button = made.appendChild(document.createElement("button"));
      button.type = "button";
      button.dataset.act = name;
      button.textContent = say[name];
      button.addEventListener("click", () => act(made, name));
    }
    made.appendChild(document.createElement("span")).setAttribute("role", "status");
    return place.appendChild(made);
  };
  document.querySelectorAll("div.cell").forEach((cell, number) => {
    if (cell.classList.contains("live")) bar("cell", cell.querySelector(".cell_input"), ["run", "edit"]).id = `live-${number}`;
  });
  for (const box of document.querySelectorAll("div.exercise.live")) bar("exercise", box, ["solve"]);
  for (const box of document.querySelectorAll("div.live-world")) bar("world", box, ["play"]);
})();
