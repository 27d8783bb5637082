/** Stored workflows and their runs, as the gateway gives them. */

import { ApiError, api, part } from '@/core/http'

export interface Stored {
  name: string
  description: string
  steps: number
  problem: string
}

export interface RunState {
  token: string
  session: string
  name: string
  state: string
  done: number
  steps: number
  created: string
  updated: string
}

export interface Try {
  step: number
  attempt: number
  started: string
  ended: string
  state: string
  summary: string
}

export interface PlanStep {
  text: string
  skill: string
  agent: string
  input: string
  output: string
}

export interface Run {
  token: string
  session: string
  state: string
  plan: { name: string; description: string; steps: PlanStep[] }
  tries: Try[]
}

export interface StepView extends PlanStep {
  number: number
  /** `success`, `pending`, `running`, `cut` (a process ended in the middle), a failure, or empty before its first try. */
  state: string
  tries: Try[]
}

export interface Checked {
  name: string
  problems: { line: number; message: string }[]
  steps: { text: string; skill: string; agent: string }[]
}

export interface StoredText {
  name: string
  text: string
  redacted: boolean
}

/** States in which a run can go on or be ended. */
export const OPEN: ReadonlySet<string> = new Set(['proposed', 'running', 'waiting', 'stopped'])

/** The steps of a plan with their tries. A try without an end is under way only while a turn of its session is. */
export function stepsOf(run: Run, isUnderWay: boolean): StepView[] {
  return run.plan.steps.map((step, index) => {
    const tries = run.tries.filter((one) => one.step === index + 1)
    const state = tries.at(-1)?.state ?? ''
    return { ...step, number: index + 1, tries, state: state === 'running' && !isUnderWay ? 'cut' : state }
  })
}

/** Seconds that a try took; null before its end. */
export function secondsOf(one: Try): number | null {
  const took = (Date.parse(one.ended) - Date.parse(one.started)) / 1_000
  return one.ended && Number.isFinite(took) ? took : null
}

export function readAll(): Promise<{ workflows: Stored[]; runs: RunState[] }> {
  return api.get('/api/workflows')
}

export function readRun(token: string): Promise<Run> {
  return api.get(`/api/workflow-runs/${part(token)}`)
}

/** The name of a conversation: letters, digits, `_` and `-` of ASCII, at most 64. */
export function sessionOf(name: string, now: number): string {
  return ['wf', name.replace(/[^\w-]/g, '').slice(0, 40), now.toString(36)].filter(Boolean).join('-')
}

/** A conversation of its own for each run. */
export function start(name: string, words: string): Promise<{ run: string; session: string }> {
  const session = sessionOf(name, Date.now())
  return api.post(`/api/workflows/${encodeURIComponent(name)}/runs`, { session, arguments: words })
}

export function goOn(token: string, repeat: boolean): Promise<{ run: string; session: string }> {
  return api.post(`/api/workflow-runs/${part(token)}/resume`, { repeat })
}

export function end(token: string): Promise<undefined> {
  return api.remove(`/api/workflow-runs/${part(token)}`)
}

export function readText(name: string) {
  return api.tagged<StoredText>(addressOf(name))
}

export function check(text: string, name: string): Promise<Checked> {
  return api.post('/api/workflows/check', { text, name })
}

/** Writes the text: over the state that `tag` names, or with an empty one as a new file. */
export function write(name: string, text: string, tag: string): Promise<StoredText> {
  return api.put(addressOf(name), { text }, tag ? { 'If-Match': tag } : { 'If-None-Match': '*' })
}

export async function remove(name: string): Promise<void> {
  const { tag } = await readText(name)
  await api.remove(addressOf(name), { 'If-Match': tag })
}

export function isConflict(error: unknown): boolean {
  return error instanceof ApiError && error.status === 412
}

/** Where the line with this number begins and ends. */
export function lineAt(text: string, line: number): [number, number] {
  const lines = text.split('\n')
  const at = Math.min(Math.max(line, 1), lines.length) - 1
  const begin = lines.slice(0, at).reduce((sum, one) => sum + one.length + 1, 0)
  return [begin, begin + (lines[at]?.length ?? 0)]
}

function addressOf(name: string): string {
  return `/api/workflows/${encodeURIComponent(name)}`
}
