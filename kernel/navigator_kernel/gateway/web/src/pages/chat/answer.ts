/** What an answer shows beside its text, made of the data of its report. */

import { dataOf, isRunning, type Turn } from '@/core/turn'

export interface Result {
  /** What a program wrote, shown as it is. */
  output: string
  /** Lines of the kernel's own reply, such as what it can do. */
  lines: string[]
  hint: string
  /** Other things that the report holds, as JSON. */
  rest: Record<string, unknown>
  /** The prompt skill that no model could carry out. */
  unworked: string
}

export interface Question {
  text: string
  /** Parts that are missing, by name. */
  missing: string[]
  /** Skills to choose from. */
  options: string[]
  /** Skills that come near; the message can be sent to one of them. */
  near: string[]
}

const OWN = new Set(['type', 'code', 'exit_code', 'msg', 'hint', 'kind', 'suggestions', 'retry_after'])

/** The words of a list of a report; nothing for what is not one. */
export function words(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one): one is string => typeof one === 'string') : []
}

export function hasText(turn: Turn): boolean {
  return turn.parts.some((part) => part.kind === 'text' && part.text.trim())
}

/** What is shown below the summary. */
export function resultOf(turn: Turn): Result {
  const data = dataOf(turn)
  const found: Result = { output: '', lines: [], hint: '', rest: {}, unworked: '' }
  if (turn.phase !== 'completed') return found
  const report = turn.steps.findLast((step) => step.report)?.report ?? {}
  if (turn.state !== 'success' && turn.state !== 'pending') {
    const message = text(data['msg'])
    found.output = message && !turn.summary.includes(message) ? message : ''
    found.hint = text(data['hint'])
    if (turn.state !== 'partial') return found
  }
  if (turn.state === 'pending') {
    found.lines = words(data['steps'])
    return found
  }
  if (hasText(turn)) return found
  if ('prompt' in data) return { ...found, unworked: text(data['skill']) || 'skill' }
  const raw = text(report['raw']).trim()
  if (words(data['capabilities']).length) found.lines = words(data['capabilities'])
  else if (raw && !'{['.includes(raw[0] as string)) found.output = raw
  else found.rest = Object.fromEntries(Object.entries(data).filter(([name]) => !OWN.has(name)))
  return found
}

/** Whether a report says that files were written or changed. */
export function hasFiles(turn: Turn): boolean {
  if (isRunning(turn)) return false
  const reports = turn.steps.flatMap((step) => (step.report ? [step.report] : []))
  const isWritten = reports.some((one) => words(one['effects']).length || words((one['data'] as Record<string, unknown>)?.['files']).length)
  return isWritten || turn.parts.some((part) => part.kind === 'tool' && ['write', 'edit', 'run'].includes(part.tool))
}

/** What the turn asks for, null where it asks for nothing that a message answers. */
export function questionOf(turn: Turn): Question | null {
  if (turn.phase !== 'completed' || turn.state !== 'pending' || turn.approval) return null
  const data = dataOf(turn)
  const reason = text(data['reason'])
  if (reason === 'no_model') {
    const near = words(data['nearest']).slice(0, 3)
    return near.length ? { text: '', missing: [], options: [], near } : null
  }
  if (reason !== 'clarify' && reason !== 'input' && !turn.question) return null
  const missing = words(data['required']).length ? words(data['required']) : (turn.question?.missing ?? [])
  return { text: turn.question?.question ?? turn.summary, missing, options: words(data['options']), near: [] }
}

/** The message that answers a question: the value alone, or `name=value` for each of several. */
export function answerTo(missing: string[], values: Record<string, string>): string {
  const given = missing.map((name) => [name, (values[name] ?? '').trim()] as const).filter(([, value]) => value)
  if (missing.length === 1) return given[0]?.[1] ?? ''
  return given.map(([name, value]) => `${name}=${quoted(value)}`).join(' ')
}

function quoted(value: string): string {
  if (/^[^\s"'\\]+$/.test(value)) return value
  return value.includes('"') && !value.includes("'") ? `'${value}'` : `"${value.replace(/"/g, '\\"')}"`
}

/** What is asked, the unified diff within it where there is one, and what follows that. No line is lost. */
export function splitDiff(text: string): { head: string; diff: string; tail: string } {
  const lines = text.split('\n')
  const at = lines.findIndex((line, index) => line.startsWith('--- ') && (lines[index + 1] ?? '').startsWith('+++ '))
  if (at < 0) return { head: text, diff: '', tail: '' }
  const after = lines.findIndex((line, index) => index > at && !/^[ +\-@\\]/.test(line))
  const end = after < 0 ? lines.length : after
  const joined = (from: number, to: number) => lines.slice(from, to).join('\n')
  return { head: joined(0, at), diff: joined(at, end), tail: joined(end, lines.length).replace(/^\. */, '') }
}

/** Seconds from one time to another, both in ISO 8601. */
export function secondsBetween(from: string, to: string): number {
  return Math.max(0, (Date.parse(to) - Date.parse(from)) / 1000) || 0
}

/** The arguments of a call in one line. */
export function argumentsLine(args: Record<string, unknown>): string {
  const shown = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value))
  return Object.entries(args)
    .map(([name, value]) => `${name}: ${shown(value)}`)
    .join(', ')
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
