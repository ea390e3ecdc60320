/* Browsers refuse to start a worker for a page that is opened from a directory. The search of the site
   runs in one, so that here a hidden frame takes its place: it loads the worker's script and passes
   messages on. Pages that come from a server keep the browser's own workers. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      frame.srcdoc = "<!doctype html><title>worker</title>"
      this.ready = new Promise((resolve) => {
        frame.addEventListener("load", () => resolve(this.start(frame, address)), { once: true })
      })
      document.body.append(frame)
    }

    async start(frame, address) {
      const scope = frame.contentWindow
      const load = (script) =>
        new Promise((resolve, reject) => {
          const element = frame.contentDocument.createElement("script")
          element.src = script
          element.onload = resolve
          element.onerror = reject
          frame.contentDocument.head.append(element)
        })
      scope.importScripts = (...scripts) =>
        scripts.reduce((before, script) => before.then(() => load(script)), Promise.resolve())
      scope.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }))
      await load(address)
      return scope
    }

    async postMessage(data) {
      const scope = await this.ready
      scope.dispatchEvent(new scope.MessageEvent("message", { data }))
    }

    terminate() {}
  }
}
