/** The time line of a run: its events as rows, those of a step below the step, those of a call as one row. */

import type { KernelEvent } from '@/core/events'
import { oneLine } from '@/core/text'

export interface Row {
  seq: number
  type: string
  depth: number
  /** Seconds from the beginning of the run. */
  offset: number
  /** Seconds; null for what takes no time, and for what has not ended. */
  duration: number | null
  isOpen: boolean
  state: string
  detail: string
  events: KernelEvent[]
}

interface Held extends Row {
  below: Held[]
}

const DETAIL = 300 // characters

/** Parents before what belongs to them; in the order in which they began. */
export function timeline(events: readonly KernelEvent[]): Row[] {
  const first = events[0]
  if (!first) return []
  const builder = new Builder(Date.parse(first.ts))
  for (const event of events) builder.take(event)
  return builder.rows()
}

/** The seconds from the first event to the last, at least a millisecond. */
export function length(rows: readonly Row[]): number {
  return Math.max(0.001, ...rows.map((row) => row.offset + (row.duration ?? 0)))
}

class Builder {
  private readonly top: Held[] = []
  private readonly bySeq = new Map<number, Held>()
  private readonly steps: Held[] = []
  private readonly calls = new Map<string, Held>()
  private last: Held | null = null

  constructor(private readonly began: number) {}

  take(event: KernelEvent): void {
    const offset = this.offset(event)
    if (event.type === 'StepCompleted' && this.endStep(event, offset)) return
    if (event.type === 'ToolCallCompleted' && this.endCall(event, offset)) return
    if (event.type === 'RunContent' && this.last?.type === 'RunContent' && this.last.events[0]?.step === event.step) {
      this.last.events.push(event)
      this.last.duration = offset - this.last.offset
      this.last.detail = textOf(this.last.events)
      return
    }
    this.add(event, offset)
  }

  rows(): Row[] {
    const found: Row[] = []
    const add = (held: Held[], depth: number) => {
      for (const { below, ...row } of held) {
        found.push({ ...row, depth })
        add(below, depth + 1)
      }
    }
    add(this.top, 0)
    return found
  }

  private add(event: KernelEvent, offset: number): void {
    const parent = this.parentOf(event)
    const begins = event.type === 'StepStarted' || event.type === 'ToolCallStarted'
    const row: Held = {
      seq: event.seq,
      type: event.type,
      depth: 0,
      offset,
      duration: null,
      isOpen: begins,
      state: stateOf(event),
      detail: event.type === 'RunContent' ? textOf([event]) : detailOf(event),
      events: [event],
      below: [],
    }
    ;(parent?.below ?? this.top).push(row)
    this.bySeq.set(event.seq, row)
    if (event.type === 'StepStarted') this.steps.push(row)
    if (event.type === 'ToolCallStarted') this.calls.set(event.payload.call, row)
    this.last = row
  }

  private parentOf(event: KernelEvent): Held | null {
    if (event.parent !== null) return this.bySeq.get(event.parent) ?? null
    if (event.step === null || event.type === 'StepStarted') return null
    return this.steps.findLast((one) => one.isOpen && one.events[0]?.step === event.step) ?? null
  }

  private endStep(event: KernelEvent & { type: 'StepCompleted' }, offset: number): boolean {
    const row = this.steps.findLast((one) => one.isOpen && one.events[0]?.step === event.step)
    if (!row) return false
    this.end(row, event, offset - row.offset, String(event.payload.report['state'] ?? ''))
    return true
  }

  private endCall(event: KernelEvent & { type: 'ToolCallCompleted' }, offset: number): boolean {
    const row = this.calls.get(event.payload.call)
    if (!row?.isOpen) return false
    this.end(row, event, Math.max(event.payload.elapsed, offset - row.offset), event.payload.state)
    return true
  }

  private end(row: Held, event: KernelEvent, seconds: number, state: string): void {
    row.events.push(event)
    Object.assign(row, { isOpen: false, duration: seconds, state })
    this.bySeq.set(event.seq, row)
    this.last = null
  }

  private offset(event: KernelEvent): number {
    const found = (Date.parse(event.ts) - this.began) / 1000
    return Number.isFinite(found) ? Math.max(0, found) : 0
  }
}

function textOf(events: KernelEvent[]): string {
  let text = ''
  for (const event of events) {
    if (event.type === 'RunContent') text += event.payload.text
    if (text.length > DETAIL * 2) break
  }
  return oneLine(text, DETAIL)
}

function stateOf(event: KernelEvent): string {
  switch (event.type) {
    case 'RunCompleted':
    case 'SkillUsed':
      return event.payload.state
    case 'RunError':
      return 'failed'
    case 'RunCancelled':
      return 'cancelled'
    default:
      return ''
  }
}

/** What an event says, in a line of foreign text; its kind is said by the page. */
function detailOf(event: KernelEvent): string {
  const line = (text: unknown) => oneLine(text, DETAIL)
  switch (event.type) {
    case 'RunStarted':
      return line(event.payload.message)
    case 'SkillsOffered':
      return String(event.payload.count)
    case 'SkillsShortlisted':
      return line(event.payload.candidates.map((one) => one.name).join(', '))
    case 'RouteDecided': {
      const held = event.payload.decision
      return line([held.kind, held.entity ?? '', held.tier].filter(Boolean).join(' · '))
    }
    case 'SkillChosen':
    case 'SkillLoaded':
    case 'SkillActivated':
    case 'SkillUsed':
      return line(event.payload.skill)
    case 'ToolsLeftOut':
      return line(event.payload.tools.join(', '))
    case 'StepStarted':
      return line([event.payload.agent, targetOf(event.payload.packet)].filter(Boolean).join(' · '))
    case 'ToolCallStarted':
      return line(`${event.payload.tool} ${JSON.stringify(event.payload.args)}`)
    case 'RunCompleted':
      return line(event.payload.summary)
    case 'RunError':
      return line(JSON.stringify(event.payload.error))
    case 'RunCancelled':
      return line(event.payload.reason)
    case 'ApprovalRequested':
      return line(event.payload.detail)
    case 'ApprovalResolved':
      return line(event.payload.subject)
    case 'ClarificationAsked':
      return line(event.payload.question)
    case 'Progress':
      return line(event.payload.text)
    case 'Usage':
      return line(`${event.payload.model} · ${event.payload.input_tokens} + ${event.payload.output_tokens}`)
    default:
      return line(JSON.stringify(event.payload))
  }
}

function targetOf(packet: Record<string, unknown>): string {
  const spec = packet['task_spec']
  return spec && typeof spec === 'object' && 'target' in spec ? String(spec.target) : ''
}
