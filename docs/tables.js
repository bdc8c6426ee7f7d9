// Marks the tables that are wider than the page, and reaches them by keyboard.
"use strict";

for (const wrapper of document.querySelectorAll(".table-wrapper")) {
  const mark = () => {
    const wide = wrapper.scrollWidth > wrapper.clientWidth + 1;
    wrapper.classList.toggle("wide", wide);
    wrapper.classList.toggle("more", wide && wrapper.scrollLeft + wrapper.clientWidth < wrapper.scrollWidth - 1);
    if (wide) wrapper.tabIndex = 0;
    else wrapper.removeAttribute("tabindex");
  };
  wrapper.addEventListener("scroll", mark, { passive: true });
  new ResizeObserver(mark).observe(wrapper);
}
