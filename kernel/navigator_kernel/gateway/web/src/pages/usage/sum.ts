/** What models took, as `GET /api/usage` answers it, and its totals. */

export interface ModelUsage {
  model: string
  requests: number
  input_tokens: number
  output_tokens: number
  cached_tokens: number
  /** US dollars, null where a price is not known. */
  cost: number | null
  /** Interrupted requests whose usage is not known. */
  unknown: number
}

export interface UsageSum {
  runs: number
  models: ModelUsage[]
}

export interface Total {
  requests: number
  input: number
  output: number
  cached: number
  cost: number
  priced: 'all' | 'some' | 'none'
  unknown: number
}

export function total(models: readonly ModelUsage[]): Total {
  const add = (of: (one: ModelUsage) => number) => models.reduce((sum, one) => sum + of(one), 0)
  const known = models.filter((one) => one.cost !== null).length
  return {
    requests: add((one) => one.requests),
    input: add((one) => one.input_tokens),
    output: add((one) => one.output_tokens),
    cached: add((one) => one.cached_tokens),
    cost: add((one) => one.cost ?? 0),
    priced: known === models.length ? 'all' : known ? 'some' : 'none',
    unknown: add((one) => one.unknown),
  }
}

/** The model's share of all tokens, from 0 to 1. */
export function share(one: ModelUsage, sum: Total): number {
  const all = sum.input + sum.output
  return all ? (one.input_tokens + one.output_tokens) / all : 0
}
