addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details")) details.open = true;
});
const number = (text) => Number(
  text.split(" (")[0].replace(/[,<>%]/g, "").replace("−", "-").replace("∞", "Infinity"));
for (const table of document.querySelectorAll("table.sortable")) {
  for (const head of table.tHead.rows[0].cells) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      for (const other of table.tHead.querySelectorAll("th")) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const body = table.tBodies[0], value = (row) => row.cells[head.cellIndex].textContent.trim();
      const rows = [...body.rows].sort((a, b) => {
        const x = value(a), y = value(b), m = number(x), n = number(y);
        if (x === "–" || y === "–") return (x === "–") - (y === "–");
        const order = Number.isNaN(m) || Number.isNaN(n) ? x.localeCompare(y) : m - n || 0;
        return up ? order : -order;
      });
      body.append(...rows);
    });
  }
}
