/* Pictures that come in a light and a dark version, as <picture> with prefers-color-scheme, follow the
   palette that the reader chose and not only the system's. */
const update = () => {
  const dark = document.body.getAttribute("data-md-color-scheme") === "slate"
  for (const source of document.querySelectorAll("picture source")) {
    source.dataset.media ??= source.media
    const wanted = /prefers-color-scheme:\s*(dark|light)/.exec(source.dataset.media)
    if (wanted) source.media = (wanted[1] === "dark") === dark ? "all" : "not all"
  }
}
new MutationObserver(update).observe(document.body, { attributeFilter: ["data-md-color-scheme"] })
update()
