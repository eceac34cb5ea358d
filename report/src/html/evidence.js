// A button shows its picture in place of the others of its capture.
const pictures = [...document.querySelectorAll("figure[data-picture]")];
const buttons = [...document.querySelectorAll("button[data-shows]")];
function showPicture(name) {
  const chosen = pictures.find((figure) => figure.dataset.picture === name);
  if (!chosen) return;
  const group = chosen.closest(".pictures");
  for (const figure of pictures) if (figure.closest(".pictures") === group) figure.hidden = figure !== chosen;
  const own = pictures.filter((figure) => figure.closest(".pictures") === group).map((figure) => figure.dataset.picture);
  for (const button of buttons) if (own.includes(button.dataset.shows)) button.setAttribute("aria-pressed", button.dataset.shows === name);
  return group;
}
for (const button of buttons) button.addEventListener("click", () => showPicture(button.dataset.shows)?.scrollIntoView({ block: "start" }));
// Paper has no summary to click.
addEventListener("beforeprint", () => { for (const part of document.querySelectorAll("details")) part.open = true; });
