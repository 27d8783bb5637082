/** What a page shows of one turn, made of its events. Events that came before are left out, so that a stream may be
 * read twice. */

import type { Candidate, Decision, KernelEvent, Payloads } from './events'

export interface ToolCall {
  kind: 'tool'
  call: string
  tool: string
  args: Record<string, unknown>
  state: string // 'running' until it has ended
  elapsed: number | null
  result: string
}

export interface SkillMark {
  kind: 'skill'
  skill: string
  agent: string
  state: string // 'running' until it has ended
}

export interface TextPart {
  kind: 'text'
  text: string
}

export type Part = TextPart | ToolCall | SkillMark

export interface Asked {
  id: string
  subject: string
  detail: string
  expires: string
  granted: boolean | null
}

export interface Step {
  step: number | null
  agent: string
  packet: Record<string, unknown>
  report: Record<string, unknown> | null
}

export interface Choice {
  offered: number | null
  shortlist: Candidate[]
  band: string
  reason: string
  decision: Decision | null
  chosen: Payloads['SkillChosen'] | null
  loaded: Payloads['SkillLoaded'] | null
  used: Payloads['SkillUsed'] | null
  leftOut: Payloads['ToolsLeftOut'] | null
  /** Everything of these kinds, in order: a workflow has several. */
  all: {
    chosen: Payloads['SkillChosen'][]
    loaded: Payloads['SkillLoaded'][]
    used: Payloads['SkillUsed'][]
    leftOut: Payloads['ToolsLeftOut'][]
  }
}

export interface Turn {
  run: string
  session: string
  turn: number
  started: string
  ended: string
  message: string
  language: string
  /** `running`, `completed`, `failed` or `cancelled` */
  phase: string
  /** The state of its report: one of the five, empty before its end. */
  state: string
  summary: string
  error: string
  sections: Record<string, string[]>
  /** Of a reply that no step made; `dataOf` finds that of any turn. */
  data: Record<string, unknown>
  parts: Part[]
  progress: Payloads['Progress'] | null
  approval: Asked | null
  /** Whether it began with a yes or a no to what the turn before asked; null for a message. */
  resolved: boolean | null
  question: Payloads['ClarificationAsked'] | null
  steps: Step[]
  usage: Payloads['Usage'][]
  choice: Choice
  last: number // seq of the newest event that is in it
}

export function emptyTurn(run: string, session: string): Turn {
  return {
    run,
    session,
    turn: 0,
    started: '',
    ended: '',
    message: '',
    language: 'en',
    phase: 'running',
    state: '',
    summary: '',
    error: '',
    sections: {},
    data: {},
    parts: [],
    progress: null,
    approval: null,
    resolved: null,
    question: null,
    steps: [],
    usage: [],
    choice: {
      offered: null,
      shortlist: [],
      band: '',
      reason: '',
      decision: null,
      chosen: null,
      loaded: null,
      used: null,
      leftOut: null,
      all: { chosen: [], loaded: [], used: [], leftOut: [] },
    },
    last: -1,
  }
}

/** Takes one event into the turn; false for one that was taken before. */
export function take(turn: Turn, event: KernelEvent): boolean {
  if (event.run !== turn.run || event.seq <= turn.last) return false
  turn.last = event.seq
  if (!takeWork(turn, event)) takeChoice(turn, event)
  return true
}

/** The text of the answer: what was streamed, and the summary where that was not part of it. */
export function answerOf(turn: Turn): string {
  const streamed = turn.parts.flatMap((part) => (part.kind === 'text' ? [part.text] : [])).join('\n\n')
  return streamed.trim() || turn.summary
}

/** Whether the summary still has to be shown below the streamed parts. It may be the beginning of all of them. */
export function isSummaryNew(turn: Turn): boolean {
  const texts = turn.parts.flatMap((part) => (part.kind === 'text' ? [part.text] : []))
  const bare = (text: string) => text.replace(/[\s…]+/g, '')
  const summary = bare(turn.summary)
  return summary !== '' && !bare(texts.join('').slice(0, 100_000)).includes(summary)
}

/** The data of the last report, whoever made it. */
export function dataOf(turn: Turn): Record<string, unknown> {
  const held = turn.steps.findLast((step) => step.report)?.report?.['data']
  return typeof held === 'object' && held !== null ? (held as Record<string, unknown>) : turn.data
}

export function isRunning(turn: Turn): boolean {
  return turn.phase === 'running'
}

function takeWork(turn: Turn, event: KernelEvent): boolean {
  switch (event.type) {
    case 'RunStarted':
      Object.assign(turn, { turn: event.turn, started: event.ts, ...event.payload, session: event.session })
      return true
    case 'RunContent':
      if (event.step !== null) addText(turn, event.payload.text)
      return true
    case 'SkillActivated':
      turn.parts.push({ kind: 'skill', skill: event.payload.skill, agent: event.payload.agent, state: 'running' })
      return true
    case 'ToolCallStarted':
      turn.parts.push({ kind: 'tool', ...event.payload, state: 'running', elapsed: null, result: '' })
      return true
    case 'ToolCallCompleted':
      endCall(turn, event.payload)
      return true
    case 'Progress':
      turn.progress = event.payload
      return true
    case 'RunCompleted':
      Object.assign(turn, event.payload)
      end(turn, 'completed', event.ts)
      return true
    case 'RunError':
      turn.error = messageOf(event.payload.error)
      end(turn, 'failed', event.ts)
      return true
    case 'RunCancelled':
      turn.error = event.payload.reason
      end(turn, 'cancelled', event.ts)
      return true
    default:
      return false
  }
}

function takeChoice(turn: Turn, event: KernelEvent): void {
  const choice = turn.choice
  switch (event.type) {
    case 'SkillsOffered':
      choice.offered = event.payload.count
      break
    case 'SkillsShortlisted':
      Object.assign(choice, {
        shortlist: event.payload.candidates,
        band: event.payload.band,
        reason: event.payload.reason,
      })
      break
    case 'RouteDecided':
      choice.decision = event.payload.decision
      break
    case 'SkillChosen':
      choice.chosen = event.payload
      choice.all.chosen.push(event.payload)
      break
    case 'SkillLoaded':
      choice.loaded = event.payload
      choice.all.loaded.push(event.payload)
      break
    case 'SkillUsed':
      choice.used = event.payload
      choice.all.used.push(event.payload)
      endSkill(turn, event.payload)
      break
    case 'ToolsLeftOut':
      choice.leftOut = event.payload
      choice.all.leftOut.push(event.payload)
      break
    case 'StepStarted':
      turn.steps.push({ step: event.step, agent: event.payload.agent, packet: event.payload.packet, report: null })
      break
    case 'StepCompleted': {
      const step = turn.steps.findLast((one) => one.step === event.step && !one.report)
      if (step) step.report = event.payload.report
      break
    }
    case 'ApprovalRequested':
      turn.approval = { ...event.payload, granted: null }
      break
    case 'ApprovalResolved':
      turn.resolved = event.payload.granted
      if (turn.approval) turn.approval.granted = event.payload.granted
      break
    case 'ClarificationAsked':
      turn.question = event.payload
      break
    case 'Usage':
      turn.usage.push(event.payload)
      break
  }
}

function addText(turn: Turn, text: string): void {
  const last = turn.parts.at(-1)
  if (last?.kind === 'text') last.text += text
  else turn.parts.push({ kind: 'text', text })
}

function endCall(turn: Turn, ended: Payloads['ToolCallCompleted']): void {
  const held = turn.parts.findLast((part) => part.kind === 'tool' && part.call === ended.call)
  if (held?.kind === 'tool') Object.assign(held, { state: ended.state, elapsed: ended.elapsed, result: ended.result })
}

function endSkill(turn: Turn, used: Payloads['SkillUsed']): void {
  const held = turn.parts.findLast((part) => part.kind === 'skill' && part.skill === used.skill)
  if (held?.kind === 'skill') held.state = used.state
}

function end(turn: Turn, phase: string, ts: string): void {
  turn.phase = phase
  turn.ended = ts
  turn.progress = null
  for (const part of turn.parts) if (part.kind !== 'text' && part.state === 'running') part.state = phase === 'completed' ? 'success' : phase
}

function messageOf(error: Record<string, unknown>): string {
  const said = error['message'] ?? error['msg'] ?? error['detail'] ?? error['type']
  return typeof said === 'string' ? said : JSON.stringify(error)
}
