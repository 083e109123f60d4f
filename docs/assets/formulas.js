// Draws formulas with the copy of KaTeX beside this file: no network is needed.
document.addEventListener("DOMContentLoaded", () => {
  // What the Markdown extension marked as a formula.
  for (const element of document.querySelectorAll(".arithmatex")) {
    const marked = element.textContent.trim();
    katex.render(marked.slice(2, -2), element, {displayMode: marked.startsWith("\\["), throwOnError: false});
  }
  // Headings with formulas are repeated in the table of contents, unmarked.
  for (const element of document.querySelectorAll(".md-nav__link .md-ellipsis")) {
    renderMathInElement(element, {delimiters: [{left: "\\(", right: "\\)", display: false}], throwOnError: false});
  }
  // In the text of notebooks nothing is marked.
  for (const element of document.querySelectorAll(".jp-RenderedMarkdown")) {
    const delimiters = [{left: "$$", right: "$$", display: true}, {left: "$", right: "$", display: false}];
    renderMathInElement(element, {delimiters, throwOnError: false});
  }
});
