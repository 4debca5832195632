// Boxes that scroll sideways take the keyboard's focus, so that arrow keys move them; the theme does so for code only.
(() => {
  const boxes = "mjx-container[display], span.math, .table-wrapper, .pst-scrollable-table-container, .output.text_html";
  const update = () => {
    for (const box of document.querySelectorAll(boxes)) {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  };
  addEventListener("load", async () => {
    await window.MathJax?.startup?.promise;
    new ResizeObserver(update).observe(document.body);
  });
})();
