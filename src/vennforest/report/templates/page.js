
for (const table of document.querySelectorAll("table.sortable")) {
  for (const head of table.tHead.rows[table.tHead.rows.length - 1].cells) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      for (const other of table.tHead.querySelectorAll("th")) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const body = table.tBodies[0], at = head.cellIndex;
      const value = (row) => row.cells[at].dataset.value ?? row.cells[at].textContent.trim();
      const rows = [...body.rows].sort((a, b) => {
        const x = value(a), y = value(b), m = Number(x), n = Number(y);
        if (x === "" || y === "") return (x === "") - (y === "");
        const order = Number.isNaN(m) || Number.isNaN(n) ? x.localeCompare(y) : m - n || 0;
        return up ? order : -order;
      });
      body.append(...rows);
    });
  }
}
