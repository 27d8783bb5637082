/** Long work on the server (`/api/jobs`): begun, followed with its progress, and ended with a result or an ApiError. */

import { api, ApiError, type Problem } from './http'

export interface Job<T> {
  id: string
  operation: string
  started: string
  state: 'waiting' | 'running' | 'done' | 'failed'
  done: number
  all: number
  result: T | null
  problem: Problem | null
}

export interface Progress {
  done: number
  all: number
}

type OnProgress = (progress: Progress) => void

const PAUSE = 1_500 // milliseconds between two tries while the server cannot be reached
const TRIES = 20

/** Waits for the job that `begin` started. */
export async function runJob<T>(begin: () => Promise<{ job: string }>, onProgress?: OnProgress): Promise<T> {
  return followJob<T>((await begin()).job, onProgress)
}

export async function followJob<T>(id: string, onProgress: OnProgress = () => undefined): Promise<T> {
  for (let tries = 0; ; ) {
    try {
      const job = await api.get<Job<T>>(`/api/jobs/${encodeURIComponent(id)}`, { wait: 1 })
      tries = 0
      onProgress({ done: job.done, all: job.all })
      if (job.state === 'done') return job.result as T
      if (job.state === 'failed') throw failure(job.problem)
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 0) || ++tries > TRIES) throw error
      await new Promise((resolve) => setTimeout(resolve, PAUSE))
    }
  }
}

function failure(problem: Problem | null): ApiError {
  const held = problem ?? { status: 500, code: 'error', detail: '', hint: '' }
  return new ApiError({ ...held, hint: held.hint ?? '' })
}
