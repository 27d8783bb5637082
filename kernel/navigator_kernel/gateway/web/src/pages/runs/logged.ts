/** A run as `GET /api/runs` lists it, and how the list is narrowed. */

export interface LoggedRun {
  run: string
  session: string
  turn: number
  message: string
  started: string
  elapsed: number | null
  state: string
  summary: string
  skills: string[]
  requests: number
  input_tokens: number
  output_tokens: number
  cost: number | null
}

export interface Filter {
  q: string
  state: string
  skill: string
  session: string
}

export const STATES = ['success', 'partial', 'pending', 'error', 'timeout', 'running', 'failed', 'cancelled', 'unfinished'] as const

/** As the server decides it, for a run that comes in while the list is shown. */
export function fits(run: LoggedRun, filter: Filter): boolean {
  const message = run.message.toLowerCase()
  return (
    (!filter.state || run.state === filter.state) &&
    (!filter.session || run.session === filter.session) &&
    (!filter.skill || run.skills.includes(filter.skill)) &&
    filter.q.toLowerCase().split(/\s+/).every((word) => message.includes(word))
  )
}

/** The list with a run in its place, newest first; without it where it does not fit any more. */
export function placed(runs: readonly LoggedRun[], run: LoggedRun, filter: Filter): LoggedRun[] {
  const others = runs.filter((one) => one.run !== run.run)
  if (!fits(run, filter)) return others
  const at = others.findIndex((one) => one.run < run.run)
  const isBeyond = at < 0 && others.length > 0 && others.length === runs.length
  if (isBeyond) return others // it is on a page that was not read yet
  return at < 0 ? [...others, run] : [...others.slice(0, at), run, ...others.slice(at)]
}
