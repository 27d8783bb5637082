/** What `GET /api/runs/{run}/why` answers. */

export interface Missed {
  skill: string
  stages: string[]
  fell_out: string
  why: string
  confidence: number | null
  best: [string, number] | null
}

export interface Explanation {
  run: string
  why: string[]
  lines: string[]
  shortlisted: string
  decided: string
  missed: Missed | null
}

/** A probability as in `navigator why`. */
export function two(value: number): string {
  return value.toFixed(2)
}
