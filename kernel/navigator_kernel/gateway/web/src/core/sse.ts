/** Reads a stream of server-sent events by the rules of WHATWG HTML 9.2, from a response that `fetch` gave:
 * `EventSource` cannot send a header. */

export interface Sent {
  id: string
  event: string
  data: string
}

/** The events of text that comes in pieces. A comment is a sign of life and no event. */
export class SseParser {
  private rest = ''
  private id = ''
  private event = ''
  private data: string[] = []
  private isFirst = true

  push(piece: string): Sent[] {
    const found: Sent[] = []
    let text = this.rest + piece
    if (this.isFirst && text) {
      this.isFirst = false
      if (text.startsWith('\uFEFF')) text = text.slice(1)
    }
    let at = 0
    for (;;) {
      const end = lineEnd(text, at)
      if (!end) break
      this.take(text.slice(at, end.at), found)
      at = end.next
    }
    this.rest = text.slice(at)
    return found
  }

  private take(line: string, found: Sent[]): void {
    if (line === '') {
      if (this.data.length) found.push({ id: this.id, event: this.event || 'message', data: this.data.join('\n') })
      this.event = ''
      this.data = []
      return
    }
    const colon = line.indexOf(':')
    const name = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(colon + (line[colon + 1] === ' ' ? 2 : 1))
    if (name === 'data') this.data.push(value)
    else if (name === 'event') this.event = value
    else if (name === 'id' && !value.includes('\0')) this.id = value
  }
}

/** Where the line that begins at `at` ends; a CR at the very end may be half of a CRLF. */
function lineEnd(text: string, at: number): { at: number; next: number } | null {
  for (let i = at; i < text.length; i++) {
    if (text[i] === '\n') return { at: i, next: i + 1 }
    if (text[i] === '\r') {
      if (i + 1 === text.length) return null
      return { at: i, next: text[i + 1] === '\n' ? i + 2 : i + 1 }
    }
  }
  return null
}

/** The events of a response, until it ends. `alive` is called with every piece, comments included. */
export async function* eventsOf(answer: Response, alive: () => void = () => undefined): AsyncGenerator<Sent> {
  if (!answer.body) return
  const reader = answer.body.getReader()
  const decoder = new TextDecoder()
  const parser = new SseParser()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      alive()
      yield* parser.push(decoder.decode(value, { stream: true }))
    }
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}
