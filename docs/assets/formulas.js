// Draws what the Markdown extension marked as a formula, with the copy of KaTeX beside this file: no network is needed.
document.addEventListener("DOMContentLoaded", () => {
  for (const element of document.querySelectorAll(".arithmatex")) {
    const marked = element.textContent.trim();
    katex.render(marked.slice(2, -2), element, {displayMode: marked.startsWith("\\["), throwOnError: false});
  }
});
