/** The one stream of all runs (`GET /api/events`): it is kept open, and opened again where it was lost. */

import type { KernelEvent } from './events'
import { ApiError, send } from './http'
import { eventsOf } from './sse'

export type LiveState = 'off' | 'connecting' | 'open' | 'lost'

const SILENCE = 45_000 // milliseconds; the gateway sends a sign of life every 15 seconds
const LONGEST = 10_000 // milliseconds between two tries

export interface LiveOptions {
  onEvent: (event: KernelEvent) => void
  /** Some events were missed: what is shown must be read again. */
  onReset: () => void
  onState: (state: LiveState) => void
}

export class Live {
  private last = ''
  private tries = 0
  private stopped = true
  private controller = new AbortController()
  private wake: (() => void) | null = null

  constructor(private readonly options: LiveOptions) {}

  start(): void {
    if (!this.stopped) return
    this.stopped = false
    void this.run()
  }

  stop(): void {
    this.stopped = true
    this.controller.abort()
    this.wake?.()
    this.options.onState('off')
  }

  private async run(): Promise<void> {
    while (!this.stopped) {
      this.options.onState(this.tries ? 'lost' : 'connecting')
      try {
        await this.follow()
        this.tries = 0
      } catch (error) {
        if (this.stopped || (error instanceof ApiError && [401, 403].includes(error.status))) break
        this.tries++
      }
      if (!this.stopped) await this.pause(Math.min(LONGEST, 250 * 2 ** this.tries))
    }
  }

  private async follow(): Promise<void> {
    this.controller = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const alive = () => {
      clearTimeout(timer)
      timer = setTimeout(() => this.controller.abort(), SILENCE)
    }
    const headers: Record<string, string> = this.last ? { 'Last-Event-ID': this.last } : {}
    try {
      alive()
      const query = { events: 'all' }
      const answer = await send('GET', '/api/events', { query, headers, signal: this.controller.signal })
      const wasLost = this.tries > 0
      this.tries = 0
      this.options.onState('open')
      if (wasLost && !this.last) this.options.onReset() // no event had come that could say where it was
      for await (const sent of eventsOf(answer, alive)) {
        if (sent.id) this.last = sent.id
        if (sent.event === 'Reset') this.options.onReset()
        else if (sent.event !== 'TokenEnded') this.options.onEvent(JSON.parse(sent.data) as KernelEvent)
      }
    } finally {
      clearTimeout(timer)
    }
  }

  private pause(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer)
        window.removeEventListener('online', done)
        this.wake = null
        resolve()
      }
      const timer = setTimeout(done, milliseconds)
      window.addEventListener('online', done)
      this.wake = done
    })
  }
}
