// The theme: the system's, until the button is pressed.
document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement, system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  root.dataset.theme = (root.dataset.theme || system) === "dark" ? "light" : "dark";
});

const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const colors = bytes(palette);

// The state after each token, as a picture of one pixel for each number.
for (const stepper of document.querySelectorAll(".stepper")) {
  const data = JSON.parse(stepper.querySelector("script").textContent);
  const [, rows, columns] = data.shape, numbers = new Int8Array(bytes(data.numbers).buffer);
  const canvas = stepper.querySelector("canvas"), slider = stepper.querySelector("input");
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext("2d"), pixels = context.createImageData(columns, rows);
  const draw = () => {
    const token = slider.valueAsNumber, first = (token - 1) * rows * columns;
    for (let i = 0; i < rows * columns; i++) {
      const color = 3 * (numbers[first + i] + 128);
      pixels.data.set([colors[color], colors[color + 1], colors[color + 2], 255], 4 * i);
    }
    context.putImageData(pixels, 0, 0);
    stepper.querySelector("output").textContent = token;
    stepper.querySelector(".norm").textContent =
      `‖S‖ = ${data.norms[token - 1].toPrecision(3)}; the darkest red is ${data.top.toPrecision(2)}, the darkest blue −${data.top.toPrecision(2)}`;
  };
  slider.addEventListener("input", draw);
  draw();
}

// A picture as a file, in the colours of paper.
for (const button of document.querySelectorAll(".save")) {
  button.addEventListener("click", () => {
    const figure = button.closest("figure"), svg = figure.querySelector("svg").cloneNode(true);
    const box = svg.viewBox.baseVal;
    svg.setAttribute("width", box.width);
    svg.setAttribute("height", box.height);
    const paper = { currentColor: "#1b1f25", "var(--muted)": "#5c6673", "var(--line)": "#d7dce2", "var(--blue)": "#0072b2" };
    let text = new XMLSerializer().serializeToString(svg);
    for (const [themed, color] of Object.entries(paper)) text = text.replaceAll(themed, color);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
    link.download = `${figure.dataset.name}.svg`;
    link.click();
    URL.revokeObjectURL(link.href);
  });
}
